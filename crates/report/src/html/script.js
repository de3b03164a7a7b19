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

  const layout = (figure) => {
    const axis = (own) => ({
      gridcolor: color('line'), zerolinecolor: color('line'), linecolor: color('line'),
      automargin: true, ...own,
    });
    const result = {
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: color('muted') },
      margin: { l: 56, r: 12, t: 44, b: 44 },
      legend: { orientation: 'h', y: 1.02, yanchor: 'bottom', x: 0 },
      hovermode: 'closest',
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: color('line'), activecolor: color('muted') },
      hoverlabel: { bgcolor: color('panel'), bordercolor: color('line'), font: { color: color('ink') } },
      ...painted(figure.layout),
    };
    for (const key of Object.keys(result)) {
      if (/^[xy]axis\d*$/.test(key)) result[key] = axis(result[key]);
    }
    return result;
  };

  const config = {
    displayModeBar: 'hover', displaylogo: false, responsive: true, showSendToCloud: false, plotlyServerURL: '',
    modeBarButtonsToRemove: ['lasso2d', 'select2d', 'autoScale2d'],
    toImageButtonOptions: { format: 'svg' },
  };
  const draw = () => Promise.all(figures.map((figure) =>
    window.Plotly.react(figure.id, painted(figure.data), layout(figure), config)));

  try {
    const packed = document.getElementById('library').textContent;
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const script = document.createElement('script');
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    await draw();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
    addEventListener('beforeprint', () => { root.classList.add('paper'); draw(); });
    addEventListener('afterprint', () => { root.classList.remove('paper'); draw(); });
  } catch (error) {
    root.classList.add('failed');
    console.error(error);
  }
})();
