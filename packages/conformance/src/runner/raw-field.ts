/** A field of raw JSON; undefined where there is none. Never throws. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>)[name] : undefined;
}
