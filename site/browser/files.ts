/** What probes read of a kernel that has all that is needed. */
const TEXTS: Readonly<Record<string, string>> = {
  "/proc/sys/kernel/osrelease": "6.18.0\n",
  "/proc/self/status": "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n",
  "/proc/net/if_inet6": "",
};

function missing(path: string): Error {
  return Object.assign(new Error(`there is no ${path} in a browser`), { code: "ENOENT" });
}

/** As `readFile` of node:fs/promises, for the few texts there are. */
export function readFile(path: string): Promise<string> {
  const text = TEXTS[path];
  return text === undefined ? Promise.reject(missing(path)) : Promise.resolve(text);
}
