/**
 * Runs in the page: every visible text whose contrast with what lies behind it is below 4.5 (3 for large letters),
 * and every curve's color that is below 3 against the paper in the dark. By the formulas of WCAG 2.2.
 */
export function poorContrasts() {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const color = (text) => {
    if (!known.has(text)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = text;
      context.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = context.getImageData(0, 0, 1, 1).data;
      known.set(text, { rgb: [red, green, blue], alpha: alpha / 255 });
    }
    return known.get(text);
  };
  const light = (rgb) => {
    const [red, green, blue] = rgb.map((value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const { rgb, alpha } = color(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return rgb;
      if (alpha > 0) throw new Error(`a half-transparent background: ${at.outerHTML.slice(0, 80)}`);
    }
    return [255, 255, 255];
  };
  const poor = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement;
    // Numbers on the cells of the map lie on shapes, not on a background.
    if (!node.data.trim() || element.closest("script, style, noscript, .unseen, .skip, .cell-text, option") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = color(element instanceof SVGElement ? style.fill : style.color).rgb;
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && Number(style.fontWeight) >= 700);
    const found = contrast(ink, behind(element));
    if (found < (large ? 3 : 4.5)) poor.push(`${found.toFixed(2)}: ${node.data.trim().slice(0, 40)}`);
  }
  const root = getComputedStyle(document.documentElement);
  if (matchMedia("(prefers-color-scheme: dark)").matches) {
    for (let i = 0; i < 7; i += 1) {
      const found = contrast(color(root.getPropertyValue(`--c${i}`)).rgb, behind(document.body));
      if (found < 3) poor.push(`${found.toFixed(2)}: curve color ${i}`);
    }
  }
  return poor;
}
