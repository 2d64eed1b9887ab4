import { eligibilityOf } from "@turnout/client";
import type { ProxyStatus } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import { expect, test } from "vitest";
import { listenerIn, runningFindings } from "./running-findings.ts";

const TURNOUT = { name: "Turnout", kind: "proxy", traces: ["process node (pid 7)"], isRunning: true, pids: [7, 8], stopped: [] } as const;
const HEALTHY = { isHealthy: true, isEligible: true, reason: "" };
const status = (sourceProblems: Readonly<Record<string, string>>, services: number): ProxyStatus =>
  ({
    kind: "proxy",
    node: "n1",
    health: HEALTHY,
    source: "kube",
    sourceProblems,
    families: [{ services, appliedSinceMs: 1 }],
  }) as unknown as ProxyStatus;

test("a source that is not followed is a fault, and one without Services a risk", () => {
  expect(runningFindings({ status: status({}, 3) }, [TURNOUT])).toEqual([]);
  expect(runningFindings({ status: status({ Services: "refused" }, 3) }, [TURNOUT])).toMatchObject([
    { id: "source-not-followed", severity: "fault", because: "Services: refused" },
  ]);
  expect(runningFindings({ status: status({}, 0) }, [TURNOUT])).toMatchObject([{ id: "no-services", severity: "risk" }]);
});

test("Services with externalIPs are counted in a note, and none where an older proxy doesn't tell", () => {
  const families = [
    { services: 9, servicesWithExternalIPs: 3, appliedSinceMs: 1 },
    { services: 9, servicesWithExternalIPs: 0, appliedSinceMs: 1 },
  ];
  expect(runningFindings({ status: { ...status({}, 9), families } as unknown as ProxyStatus }, [TURNOUT])).toMatchObject([
    {
      id: "external-ips",
      severity: "note",
      what: expect.stringMatching(/^3 Services lose their externalIPs with the feature gate AllowServiceExternalIPs=false/) as string,
    },
  ]);
});

test("a node that has no Node object is a risk, and one that is to go is none", () => {
  const found = (reason: string) =>
    runningFindings({ status: { ...status({}, 3), health: { isHealthy: true, isEligible: false, reason } } }, [TURNOUT]);
  const unknown = found(eligibilityOf(undefined).reason);
  expect(unknown).toMatchObject([{ id: "not-for-load-balancers", severity: "risk" }]);
  expect(unknown[0]?.what).toContain("this node's Node object is unknown");
  expect(unknown[0]?.fix).toContain("kubectl get node n1");
  expect(found("the node is being deleted")).toMatchObject([{ severity: "note" }]);
});

test("another program at the metrics port is named, where a Turnout runs", () => {
  const error = new ProxyError("not_found", "no proxy answers (Parse Error)", { object: "127.0.0.1:10249" });
  const taken = { error, listener: { name: "python3", pid: 99 } };
  expect(runningFindings(taken, [TURNOUT])).toMatchObject([
    { id: "metrics-port-taken", severity: "risk", what: expect.stringMatching(/^python3 \(pid 99\) has the port/) as unknown },
  ]);
  expect(runningFindings(taken, [{ ...TURNOUT, isRunning: false }])).toEqual([]);
  expect(runningFindings({ error, listener: { name: "MainThread", pid: 8 } }, [TURNOUT])).toEqual([]);
  expect(runningFindings({ error }, [TURNOUT])).toEqual([]);
  const unowned = new ProxyError("not_found", "what answers there is no Turnout, or one that is older", { object: "127.0.0.1:10249/x" });
  expect(runningFindings({ error: unowned }, [TURNOUT])).toMatchObject([{ id: "metrics-port-taken" }]);
});

test("ss tells who listens", () => {
  expect(listenerIn('LISTEN 0 5 127.0.0.1:10249 0.0.0.0:* users:(("python3",pid=4711,fd=3))\n')).toEqual({ name: "python3", pid: 4711 });
  expect(listenerIn("")).toBeUndefined();
});
