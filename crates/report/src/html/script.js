// Draws the charts: unpacks the library that this file carries, and gives every figure the colors
// that the page has. Nothing is fetched; without this script the tables say the same.
(async () => {
  'use strict';
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById('figures').textContent);
  const color = (name) => getComputedStyle(root).getPropertyValue('--' + name).trim();

  // A color that begins with @ is the name of one of the page's own.
  const painted = (value) => {
    if (Array.isArray(value)) return value.map(painted);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => {
      const named = key === 'color' && typeof inner === 'string' && inner.startsWith('@');
      return [key, named ? color(inner.slice(1)) : painted(inner)];
    }));
  };

  const narrow = matchMedia('(max-width: 46rem)');
  const layout = (figure) => {
    const axis = (own) => {
      const result = {
        gridcolor: color('line'), zerolinecolor: color('line'), linecolor: color('line'),
        automargin: true, ...own,
      };
      // A long title would leave the picture; the caption says it too.
      if (narrow.matches && result.title) {
        result.title = { ...result.title, text: result.title.text.replace(' (logarithmic)', '') };
      }
      return result;
    };
    const result = {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color('muted') },
      margin: { l: 56, r: 12, t: 44, b: 44 },
      // A legend takes no more than a fifth of its plot, and a third where it has few columns; a longer
      // one scrolls.
      legend: {
        orientation: 'h', xref: 'container', x: 0, xanchor: 'left', yref: 'container', y: 1, yanchor: 'top', maxheight: narrow.matches ? 0.34 : 0.2,
      },
      hovermode: 'closest',
      // A finger scrolls the page and does not zoom.
      dragmode: matchMedia('(pointer: coarse)').matches ? false : 'zoom',
      hoverlabel: { bgcolor: color('panel'), bordercolor: color('line'), font: { color: color('ink') } },
      ...painted(figure.layout),
    };
    for (const key of Object.keys(result)) {
      if (/^[xy]axis\d*$/.test(key)) result[key] = axis(result[key]);
    }
    return result;
  };

  const config = {
    // Its buttons are none for a keyboard, and lie over the legend. A double click ends a zoom.
    displayModeBar: false, displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: '',
  };
  // A figure with several plots shows the one that the reader chose, and pales what is above the
  // reader's limit.
  const chosen = new Map();
  const limits = new Map();
  const shown = (figure) => {
    if (!figure.choices) return figure;
    const plot = figure.choices[chosen.get(figure.id) ?? figure.first];
    const limit = plot.limits[limits.get(figure.id)];
    if (!limit) return plot;
    const [masked, surface, ...others] = plot.data;
    const above = (value) => (value !== null && value > Math.log10(limit.value) + 1e-9 ? 1 : null);
    const pale = color('paper');
    const mask = {
      type: 'heatmap', x: surface.x, y: surface.y, z: surface.z.map((row) => row.map(above)),
      colorscale: [[0, pale], [1, pale]], zmin: 0, zmax: 1, opacity: 0.8, showscale: false, hoverinfo: 'skip',
    };
    return { ...plot, data: [masked, surface, mask, ...others] };
  };
  const drawOne = (figure) => {
    const { data, layout: own } = shown(figure);
    return window.Plotly.react(figure.id, painted(data), layout({ layout: own }), config);
  };
  const draw = () => Promise.all(figures.map(drawOne));

  const answer = (figure) => {
    const input = document.getElementById(figure.id + '-limit');
    if (!input) return;
    const limit = figure.choices[chosen.get(figure.id) ?? figure.first].limits[input.value];
    input.setAttribute('aria-valuetext', limit.text);
    document.getElementById(figure.id + '-answer').textContent = limit.answer;
  };
  const listen = () => {
    const figureOf = (element) => figures.find((one) => one.id === element.dataset.chart);
    for (const button of document.querySelectorAll('.choice button')) {
      button.addEventListener('click', () => {
        const figure = figureOf(button);
        chosen.set(figure.id, Number(button.dataset.plot));
        for (const one of button.parentElement.children) one.setAttribute('aria-pressed', one === button);
        answer(figure);
        drawOne(figure);
      });
    }
    for (const input of document.querySelectorAll('.ask input')) {
      input.addEventListener('input', () => {
        const figure = figureOf(input);
        limits.set(figure.id, Number(input.value));
        answer(figure);
        drawOne(figure);
      });
    }
  };

  try {
    const packed = document.getElementById('library').textContent;
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const script = document.createElement('script');
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    await draw();
    listen();
    root.classList.add('ready');
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    narrow.addEventListener('change', draw);
    const on = (paper) => {
      root.classList.toggle('paper', paper);
      draw();
      for (const figure of figures) window.Plotly.relayout(figure.id, { autosize: true });
    };
    addEventListener('beforeprint', () => on(true));
    addEventListener('afterprint', () => on(false));
  } catch (error) {
    root.classList.add('failed');
    console.error(error);
  }
})();
