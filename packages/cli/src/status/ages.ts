const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ["d", 86_400],
  ["h", 3_600],
  ["m", 60],
  ["s", 1],
];

/** A span of time for people, in at most two units, as kubectl has it: `3h12m`, `41s`. Edges: below a second, and below zero, it is `0s`. */
export function ageText(ms: number): string {
  let rest = Math.max(0, Math.floor(ms / 1000));
  const parts: string[] = [];
  for (const [unit, seconds] of UNITS) {
    const count = Math.floor(rest / seconds);
    if (parts.length === 1 && count === 0) break;
    if (count === 0) continue;
    parts.push(`${count}${unit}`);
    rest -= count * seconds;
    if (parts.length === 2) break;
  }
  return parts.length === 0 ? "0s" : parts.join("");
}

/** A time of day for people, in UTC as in logs; with its date where that is another than today's. */
export function timeText(ms: number, nowMs: number): string {
  const [at, now] = [new Date(ms).toISOString(), new Date(nowMs).toISOString()];
  const time = at.slice(11, 19);
  return at.slice(0, 10) === now.slice(0, 10) ? `${time} UTC` : `${at.slice(0, 10)} ${time} UTC`;
}

/** `14:17:26 UTC (3m2s ago)`. */
export function sinceText(ms: number, nowMs: number): string {
  return `${timeText(ms, nowMs)} (${ageText(nowMs - ms)} ago)`;
}
