// Runs in a report's page, in a frame as wide as a screen, after axe-core. It sends its findings to the page
// around the frame: a line for each check, "ok" or what is wrong.
(async () => {
  'use strict';
  const tell = (lines) => parent.postMessage(lines.join('\n') + '\nend', '*');
  const root = document.documentElement;
  for (let turn = 0; turn < 300 && !root.matches('.ready, .failed'); turn++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const lines = [];
  const check = (name, wrong) => lines.push(`${name}: ${wrong.length ? wrong.slice(0, 4).join(' | ') : 'ok'}`);

  check('the charts are drawn', root.classList.contains('ready') ? [] : ['the script failed']);
  const found = await axe.run(document, { resultTypes: ['violations'] });
  const said = (one) => `${one.id} at ${one.nodes[0].target}: ${one.nodes[0].html.slice(0, 100)}`;
  check('axe-core finds nothing', found.violations.map(said));
  check('the page is no wider than its screen',
    root.scrollWidth <= innerWidth ? [] : [`${root.scrollWidth} of ${innerWidth}`]);

  check('what a step does stands below its name', [...document.querySelectorAll('table .pace')]
    .filter((pace) => getComputedStyle(pace).display !== 'block').map((pace) => pace.textContent));
  // A long name may be broken.
  const broken = [];
  for (const cell of document.querySelectorAll('tbody tr > :first-child')) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      for (const word of texts.currentNode.textContent.matchAll(/(?<=^|[\s-])[^\s-]{1,10}(?=[\s-]|$)/g)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        const lines = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
        if (lines.size > 1) broken.push(word[0]);
      }
    }
  }
  check('no short word of a table is broken', broken);

  const plots = [...document.querySelectorAll('.chart [role=img]')];
  check('every chart has a name and a picture', plots
    .filter((plot) => !plot.getAttribute('aria-label') || !plot.querySelector('svg')).map((plot) => plot.id));

  const within = (inner, outer) => inner.left >= outer.left - 1 && inner.right <= outer.right + 1
    && inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const clipped = [];
  const touching = [];
  for (const plot of plots) {
    // A closed section has no layout. A legend that is too long scrolls.
    const frame = plot.getBoundingClientRect();
    if (frame.width === 0) continue;
    for (const text of plot.querySelectorAll('svg text')) {
      const box = text.getBoundingClientRect();
      if (box.width > 0 && !text.closest('.legend') && !within(box, frame)) clipped.push(`${plot.id} ${text.textContent}`);
    }
    for (const axis of plot.querySelectorAll('.xaxislayer-above, .yaxislayer-above')) {
      const labels = [...axis.querySelectorAll('.xtick text, .ytick text')]
        .filter((text) => text.getBoundingClientRect().width > 0 && !/rotate\((?!0)/.test(text.getAttribute('transform') ?? ''));
      const boxes = labels.map((text) => text.getBoundingClientRect());
      boxes.slice(1).forEach((box, nth) => {
        const before = boxes[nth];
        const apart = box.left >= before.right - 1 || box.right <= before.left + 1
          || box.top >= before.bottom - 1 || box.bottom <= before.top + 1;
        if (!apart) touching.push(`${plot.id} ${labels[nth].textContent} and ${labels[nth + 1].textContent}`);
      });
    }
  }
  check('no label leaves its chart', clipped);
  check('no labels of an axis overlap', touching);

  for (const input of document.querySelectorAll('.ask input')) {
    const answer = document.getElementById(input.dataset.chart + '-answer');
    const wrong = [];
    const [first, text] = [answer.textContent, input.getAttribute('aria-valuetext')];
    input.value = input.min;
    input.dispatchEvent(new Event('input'));
    if (answer.textContent === first || input.getAttribute('aria-valuetext') === text) wrong.push('the input changes nothing');
    const other = document.querySelector('.choice button[aria-pressed=false]');
    const before = answer.textContent;
    other.click();
    if (other.getAttribute('aria-pressed') !== 'true' || answer.textContent === before) wrong.push('the button changes nothing');
    if (document.querySelectorAll('.choice button[aria-pressed=true]').length !== 1) wrong.push('several buttons are on');
    check('the map answers to its input and its buttons', wrong);
  }
  tell(lines);
})().catch((error) => parent.postMessage(`the check itself: ${error}\nend`, '*'));
