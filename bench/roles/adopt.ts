import iptables from "@turnout/backend-iptables";
import type { Feed } from "@turnout/core";
import { createExec } from "@turnout/host";
import type { Variant } from "../kube-proxy/tools.ts";
import type { Harness } from "../line-channel.ts";
import { runRole } from "../role-process.ts";
import { createStore, createSubject, createSubjectOf, createView, fillStore } from "../subject.ts";
import type { Subject } from "../subject.ts";
import type { Shape } from "../workload.ts";
import { firstSync } from "./cold-start.ts";

/** Whose rules are adopted: the nft backend's, or those of the iptables backend in one variant. */
export type AdoptedRules = "nft" | { readonly iptables: Variant };

/** What to adopt, and who does it: the role starts itself again to have two processes on one host. */
export interface AdoptParameters {
  readonly shape: Shape;
  readonly rules: AdoptedRules;
  readonly step?: "make" | "adopt";
}

/** A restart: reading what is there and finding that it is right. Times in ms. */
export interface Adoption {
  readonly totalMs: number;
  /** Of Node and of the tools that it ran meanwhile. */
  readonly cpuMs: number;
  readonly observeMs: number;
  readonly objects: number;
  /** One listing of all tables by the tool alone; absent for nft, whose table no tool lists. */
  readonly listingMs: number | undefined;
}

const TIMEOUT_MS = 3_600_000;

/** Start a proxy in one process, then in a second one that finds the first one's rules and must leave all of them alone. */
export async function adopt({ shape, rules, step }: AdoptParameters, _harness: Harness): Promise<Adoption> {
  if (step === undefined) {
    await runRole("adopt", { shape, rules, step: "make" }, { namespace: "same" });
    const listingMs = rules === "nft" ? undefined : await listed(rules.iptables);
    const adoption = await runRole<Adoption>("adopt", { shape, rules, step: "adopt" }, { namespace: "same" });
    return { ...adoption, listingMs };
  }
  const store = createStore();
  const subject = await subjectFor(rules, createView(store));
  await fillStore(store, shape);
  const { totalMs, cpuMs, spentMs, objects } = await firstSync(subject);
  if (step === "adopt" && "apply" in spentMs) throw new Error("a restart changed rules that were right");
  await subject.close();
  return { totalMs, cpuMs, observeMs: spentMs["observe"] ?? 0, objects, listingMs: undefined };
}

function subjectFor(rules: AdoptedRules, view: Feed): Promise<Subject> {
  return rules === "nft" ? createSubject(view) : createSubjectOf(view, iptables, { raw: { variant: rules.iptables } });
}

async function listed(variant: Variant): Promise<number> {
  const startMs = performance.now();
  const { code } = await createExec().run(`iptables-${variant}-save`, [], { timeoutMs: TIMEOUT_MS });
  if (code !== 0) throw new Error(`iptables-${variant}-save ended with ${code}`);
  return performance.now() - startMs;
}
