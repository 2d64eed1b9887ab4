import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { commandsOf } from "./runbook.ts";

const PAGE = `# Page

## First
1. Look, and change it:

        kubectl -n x edit configmap y

2. Do this, on two lines:

        kubectl patch z \\
          -p '{}'
        kubectl rollout status z

## Second
Text without commands.
`;

it("reads the commands of a section, whole, without those for an editor", () => {
  expect(commandsOf(PAGE, "First")).toEqual(["kubectl patch z \\\n-p '{}'", "kubectl rollout status z"]);
});

it("says what is missing", () => {
  expect(() => commandsOf(PAGE, "Second")).toThrow('section "Second" has no commands');
  expect(() => commandsOf(PAGE, "Third")).toThrow('no section "Third"');
});

it("reads both ways of docs/install.md", () => {
  const page = readFileSync(new URL("../../../docs/install.md", import.meta.url), "utf8");
  const there = commandsOf(page, "From kube-proxy to Turnout");
  const back = commandsOf(page, "Back to kube-proxy");
  expect(there.filter((command) => command.startsWith("kubectl apply -k "))).toEqual([
    "kubectl apply -k deploy/kubernetes/overlays/all",
    "kubectl apply -k deploy/kubernetes/overlays/nft",
  ]);
  expect(back[0]).toBe("kubectl -n kube-system delete daemonset turnout");
  expect(back.at(-1)).toBe("kubectl delete -k deploy/kubernetes/overlays/cleanup");
});
