import type { Harness } from "../line-channel.ts";
import { runRole } from "../role-process.ts";
import { createStore, createSubject, createView, fillStore } from "../subject.ts";
import type { Shape } from "../workload.ts";
import { firstSync } from "./cold-start.ts";
import type { ColdStart } from "./cold-start.ts";

/** What to adopt, and who does it: the role starts itself again to have two processes on one host. */
export interface AdoptParameters {
  readonly shape: Shape;
  readonly step?: "adopt";
}

/** A restart: reading what is there and finding that it is right. Times in ms. */
export interface Adoption {
  readonly totalMs: number;
  readonly observeMs: number;
  readonly objects: number;
}

/** Start a proxy in one process, then in a second one that finds the first one's rules and must leave all of them alone. */
export async function adopt({ shape, step }: AdoptParameters, _harness: Harness): Promise<Adoption> {
  if (step === undefined) {
    await runRole<ColdStart>("cold-start", shape, { namespace: "same" });
    return await runRole<Adoption>("adopt", { shape, step: "adopt" }, { namespace: "same" });
  }
  const store = createStore();
  const subject = await createSubject(createView(store));
  await fillStore(store, shape);
  const { totalMs, spentMs, objects } = await firstSync(subject);
  if ("apply" in spentMs) throw new Error("a restart changed rules that were right");
  await subject.close();
  return { totalMs, observeMs: spentMs["observe"] ?? 0, objects };
}
