import { expect, test } from "vitest";
import type { SurveyFiles } from "./files.ts";
import { turnoutCauses, turnoutProcesses } from "./turnout-processes.ts";

type Process = readonly [pid: number, command: string, parent?: number, net?: string, state?: string];

function filesOf(processes: readonly Process[]): SurveyFiles {
  const files = new Map<string, string>();
  const links = new Map([["/proc/self/ns/net", "net:[1]"]]);
  for (const [pid, command, parent = 1, net = "net:[1]", state = "S"] of processes) {
    files.set(`/proc/${pid}/comm`, "MainThread\n");
    files.set(`/proc/${pid}/cmdline`, command.replaceAll(" ", "\0"));
    files.set(`/proc/${pid}/status`, `PPid:\t${parent}\nState:\t${state}\n`);
    links.set(`/proc/${pid}/ns/net`, net);
  }
  return {
    read: (path) => Promise.resolve(files.get(path)),
    list: () => Promise.resolve(["self", ...processes.map(([pid]) => String(pid))]),
    link: (path) => Promise.resolve(links.get(path)),
  };
}

function find(processes: readonly Process[]): ReturnType<typeof turnoutCauses> {
  return turnoutCauses(filesOf(processes));
}

const RUN = "node /opt/@turnout/cli/dist/main.js run --backend nft";

test("two Turnouts that run are named with their processes", async () => {
  const [cause, ...others] = await find([
    [7, RUN],
    [9, `${RUN} --cluster-cidr 10.2.0.0/16`],
  ]);
  expect(others).toEqual([]);
  expect(cause).toMatchObject({ id: "two_proxies", show: ["ps -fp 7,9"] });
  expect(cause?.says).toContain("process node (pid 7), process node (pid 9)");
});

test.each<readonly [string, readonly Process[]]>([
  ["one that runs", [[7, RUN]]],
  [
    "a launcher and its child",
    [
      [7, RUN],
      [9, RUN, 7],
    ],
  ],
  [
    "one in another network namespace",
    [
      [7, RUN],
      [9, RUN, 1, "net:[2]"],
    ],
  ],
  [
    "a command that asks",
    [
      [7, RUN],
      [9, "node /opt/@turnout/cli/dist/main.js why host 10.96.0.1:80"],
    ],
  ],
])("%s is no second one", async (_name, processes) => {
  expect(await find(processes)).toEqual([]);
});

test("one that is stopped is named, with what has it go on", async () => {
  const [cause, ...others] = await find([[7, RUN, 1, "net:[1]", "T"]]);
  expect(others).toEqual([]);
  expect(cause).toMatchObject({ id: "not_running", commands: ["kill -CONT 7"] });
  expect(cause).not.toHaveProperty("isSure");
});

test("Turnouts that serve are found with what they were started with, however long Node's own flags and paths are", async () => {
  const long = `node --conditions=x --y=${"z".repeat(300)} /opt/@turnout/cli/dist/main.js run --source file:/etc/shop --node-name n1`;
  const processes: readonly Process[] = [
    [7, long, 1, "net:[1]", "T"],
    [8, "node /opt/@turnout/cli/dist/main.js why host 10.96.0.1:80"],
    [9, "node server.js run"],
  ];
  expect(await turnoutProcesses(filesOf(processes))).toEqual([
    { pid: 7, isStopped: true, args: ["run", "--source", "file:/etc/shop", "--node-name", "n1"] },
  ]);
});
