// Where this process plays: what child.ts was given.
const [, , cgroup = "", , , objectFile = ""] = process.argv;

/** The cgroup that it may make, and the compiled programs that are tried. */
export const place: { readonly cgroup: string; readonly objectFile: string } = { cgroup, objectFile };
