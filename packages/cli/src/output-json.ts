/** Fields of `-o json` by their names, and what each was called in the release before. For one release both are printed and read. */
const FORMER_NAMES: Readonly<Record<string, string>> = {
  fix: "mend",
  appliedSinceMs: "inForceSinceMs",
  externalChange: "foreignChange",
  sourceProblems: "sourceTroubles",
  listenProblem: "listenTrouble",
};

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * An object as `-o json` prints it. A field that was renamed is printed under its former name too; `deprecatedFields` of the whole lists these with their
 * present names, as a warning to scripts.
 */
export function outputJson(value: object, indent?: number): string {
  const used: Record<string, string> = {};
  const withFormer = (_key: string, part: unknown): unknown => {
    if (!isFields(part)) return part;
    const former = Object.entries(FORMER_NAMES).filter(([name]) => part[name] !== undefined);
    for (const [name, old] of former) used[old] = name;
    return { ...part, ...Object.fromEntries(former.map(([name, old]) => [old, part[name]])) };
  };
  const all = JSON.parse(JSON.stringify(value, withFormer)) as Fields;
  return `${JSON.stringify(Object.keys(used).length === 0 ? all : { ...all, deprecatedFields: used }, undefined, indent)}\n`;
}

/** The fields of a proxy's answer under their present names: a proxy of the release before has the former ones. */
export function withPresentNames(_key: string, part: unknown): unknown {
  if (!isFields(part)) return part;
  const renamed = Object.entries(FORMER_NAMES).filter(([name, old]) => part[name] === undefined && part[old] !== undefined);
  return renamed.length === 0 ? part : { ...part, ...Object.fromEntries(renamed.map(([name, old]) => [name, part[old]])) };
}
