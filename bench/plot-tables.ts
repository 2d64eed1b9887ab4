const UNITS: Readonly<Record<string, number>> = { µs: 0.001, ms: 1, s: 1000, MB: 1 };

/** Read what a cell begins with, in ms or MB: `1.65 s (1.51 s–2.02 s, 5 runs)` is 1650; undefined: it is no number with a unit. Pure. */
export function valueOf(cell: string): number | undefined {
  const [, number = "", unit = ""] = /^([\d.,]+) (µs|ms|s|MB)\b/.exec(cell) ?? [];
  const factor = UNITS[unit];
  return factor === undefined ? undefined : Number(number.replaceAll(",", "")) * factor;
}

/** One of the values of a cell, from 0, without ratios: of `9.3k/s, 189.0 µs (0.98x, 1.02x)` the second is `189.0 µs`; empty: it has none there. The first is the cell as it is. Pure. */
export function partOf(cell: string, part: number): string {
  return part === 0 ? cell : (cell.replace(/ \(.*$/, "").split(", ")[part] ?? "");
}

/** The value of a cell as it is written, without runs and ratios. Pure. */
export function valueText(cell: string): string {
  return cell.replace(/ \(.*$/, "");
}
