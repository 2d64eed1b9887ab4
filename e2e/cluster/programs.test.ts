import { expect, it } from "vitest";
import { missingPrograms, foldersOf, programAt } from "./programs.ts";

it("keeps programs where the flag says, else the variable, else in the user's cache", () => {
  const env = { TURNOUT_CLUSTER: "/variable", XDG_CACHE_HOME: "/cache" };
  expect(foldersOf("1.36.3", "/flag", env).kubernetes).toBe("/flag/kubernetes-1.36.3");
  expect(foldersOf("1.36.3", undefined, env).tools).toBe("/variable/tools");
  expect(foldersOf("1.36.3", undefined, { XDG_CACHE_HOME: "/cache" }).run).toBe("/cache/turnout-cluster/run");
  expect(foldersOf("1.36.3", undefined, {}).run).toMatch(/\.cache\/turnout-cluster\/run$/);
});

it("tools serve every version of Kubernetes, its own programs one", () => {
  const folders = foldersOf("1.36.3", "/flag", {});
  expect([programAt(folders, "etcd"), programAt(folders, "kubelet")]).toEqual([
    "/flag/tools/bin/etcd",
    "/flag/kubernetes-1.36.3/bin/kubelet",
  ]);
});

it("what is not there is missing", () => {
  expect(missingPrograms(foldersOf("1.36.3", "/nowhere", {}), ["etcd", "kubelet"])).toEqual(["etcd", "kubelet"]);
});
