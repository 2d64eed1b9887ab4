/** One bar, or the words that stand in its place. */
export interface Bar {
  /** What it is of: one of {@link BarPlot.series}. */
  readonly series: number;
  /** Undefined: there is none, and `text` says why. */
  readonly value: number | undefined;
  readonly text: string;
}

/** Bars that belong together. */
export interface BarGroup {
  readonly label: string;
  readonly bars: readonly Bar[];
}

/** A plot of horizontal bars. */
export interface BarPlot {
  readonly title: string;
  /** What the bars are, e.g. `time, logarithmic`. */
  readonly axis: string;
  /** Names of the colours; one needs no legend. */
  readonly series: readonly string[];
  readonly groups: readonly BarGroup[];
  readonly isLogarithmic: boolean;
  /** Write a value of the axis. */
  readonly tick: (value: number) => string;
}

const WIDTH = 760;
const LEFT = 215;
/** Room for the text behind the longest bar. */
const RIGHT = 130;
const BAR = 16;
const GAP = 12;
const TOP = 74;

/** Colours for light and dark grounds; the first is Turnout's. */
const STYLE = `text{font:13px system-ui,sans-serif;fill:#1c2126}.title{font-size:15px;font-weight:600}.quiet{fill:#55606b}.grid{stroke:#d6dade}.ground{fill:#fff}.s0{fill:#0b5cad}.s1{fill:#c2571a}.s2{fill:#8a949d}
@media (prefers-color-scheme:dark){text{fill:#e6e9ec}.quiet{fill:#a3adb7}.grid{stroke:#364049}.ground{fill:#1c2227}.s0{fill:#7db8f5}.s1{fill:#f0a060}.s2{fill:#7d8892}}`;

/** Draw a plot as an SVG document that stands alone. Pure: the same plot is the same text. */
export function barPlotSvg(plot: BarPlot): string {
  const { title, axis, series, groups } = plot;
  const scale = scaleOf(plot);
  const parts: string[] = [];
  let y = TOP;
  for (const { label, bars } of groups) {
    const middle = y + (bars.length * BAR) / 2;
    parts.push(textAt(LEFT - 10, middle, label, 'text-anchor="end"'));
    for (const bar of bars) {
      parts.push(...barParts(bar, y, scale));
      y += BAR;
    }
    y += GAP;
  }
  const grid = scale.ticks.map(
    (value) =>
      `<line class="grid" x1="${scale.x(value)}" x2="${scale.x(value)}" y1="${TOP - 6}" y2="${y - GAP + 4}"/>` +
      textAt(scale.x(value), y + 8, plot.tick(value), 'class="quiet" text-anchor="middle"'),
  );
  const height = y + 24;
  const label = `${title}: ${groups.map((group) => `${group.label}: ${group.bars.map((bar) => `${series[bar.series]} ${bar.text}`).join(", ")}`).join("; ")}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(label)}">
<style>${STYLE}</style>
<rect class="ground" width="${WIDTH}" height="${height}" rx="6"/>
${textAt(16, 24, title, 'class="title"')}
${legend(series)}
${textAt(WIDTH - 16, 24, axis, 'class="quiet" text-anchor="end"')}
${grid.join("\n")}
${parts.join("\n")}
</svg>
`;
}

interface Scale {
  readonly ticks: readonly number[];
  x(value: number): number;
}

function scaleOf({ groups, isLogarithmic }: BarPlot): Scale {
  const values = groups.flatMap(({ bars }) => bars.flatMap(({ value }) => value ?? []));
  const [min, max] = [Math.min(...values), Math.max(...values)];
  const space = WIDTH - LEFT - RIGHT;
  if (isLogarithmic) {
    // The shortest bar is to be seen, too.
    const [from, to] = [Math.floor(Math.log10(min) - 0.2), Math.ceil(Math.log10(max))];
    return {
      ticks: Array.from({ length: to - from + 1 }, (_, index) => 10 ** (from + index)),
      x: (value) => rounded(LEFT + (space * (Math.log10(value) - from)) / (to - from)),
    };
  }
  const step = niceStep(max / 4);
  const count = Math.ceil(max / step);
  return {
    ticks: Array.from({ length: count + 1 }, (_, index) => index * step),
    x: (value) => rounded(LEFT + (space * value) / (count * step)),
  };
}

/** 1, 2 or 5 times a power of ten. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= least) ?? power;
}

function barParts({ series, value, text }: Bar, y: number, scale: Scale): readonly string[] {
  const middle = y + BAR / 2;
  if (value === undefined) return [textAt(LEFT + 4, middle, text, 'class="quiet"')];
  const end = scale.x(value);
  return [
    `<rect class="s${series}" x="${LEFT}" y="${y + 1}" width="${rounded(Math.max(end - LEFT, 1))}" height="${BAR - 2}"/>`,
    textAt(end + 6, middle, text),
  ];
}

function legend(series: readonly string[]): string {
  if (series.length < 2) return "";
  let x = LEFT;
  const parts = series.map((name, index) => {
    const at = x;
    x += 34 + name.length * 7;
    return `<circle class="s${index}" cx="${at + 6}" cy="44" r="6"/>${textAt(at + 18, 44, name)}`;
  });
  return parts.join("");
}

function textAt(x: number, y: number, text: string, attributes: string = ""): string {
  return `<text x="${rounded(x)}" y="${rounded(y)}" dominant-baseline="central"${attributes === "" ? "" : ` ${attributes}`}>${escaped(text)}</text>`;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
