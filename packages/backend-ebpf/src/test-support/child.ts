// Run in namespaces and a cgroup of its own (stage.ts): plays one scenario of a group, and prints what it saw as JSON.
type Scenarios = Readonly<Record<string, () => Promise<unknown>>>;

const GROUPS: Readonly<Record<string, () => Promise<Scenarios>>> = {
  sockets: async () => (await import("./socket-scenarios.ts")).scenarios,
  packets: async () => (await import("./packet-scenarios.ts")).scenarios,
  flows: async () => (await import("./packet-flows.ts")).scenarios,
  trials: async () => (await import("./packet-trials.ts")).scenarios,
  module: async () => (await import("./module-scenarios.ts")).scenarios,
  node: async () => (await import("./node-scenarios.ts")).scenarios,
  killings: async () => (await import("./killings.ts")).scenarios,
};

const [, , , groups = "", name = ""] = process.argv;
for (const group of groups.split(" ")) {
  const scenario = (await GROUPS[group]?.())?.[name];
  if (scenario === undefined) continue;
  process.stdout.write(JSON.stringify(await scenario()) ?? "");
  process.exit(0);
}
throw new Error(`no scenario "${name}"`);
