// Finds visible texts whose WCAG contrast against what is painted behind them is below a minimum.
(least) => {
  const parse = (colour) => (colour.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
  const over = (top, under) => {
    const alpha = top[3] ?? 1;
    return [0, 1, 2].map((at) => top[at] * alpha + under[at] * (1 - alpha));
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((part) =>
      part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement)
      layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const faint = [];
  let checked = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.data.trim();
    if (!text || ["SCRIPT", "STYLE", "NOSCRIPT"].includes(element.tagName)) continue;
    if (!element.checkVisibility({ visibilityProperty: true }) || element.closest(".sr, .skip"))
      continue;
    const style = getComputedStyle(element);
    const drawn = element.closest("svg") ? style.fill : style.color;
    const under = behind(element);
    const [a, b] = [light(over(parse(drawn), under)), light(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    checked++;
    if (ratio < least)
      faint.push({ text: text.slice(0, 40), ratio: Math.round(ratio * 100) / 100, drawn });
  }
  return { checked, faint };
};
