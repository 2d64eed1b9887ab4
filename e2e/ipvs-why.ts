import assert from "node:assert/strict";
import { STAGE_SETTINGS } from "@turnout/conformance";
import { settingsFlags } from "./conformance-settings.ts";
import type { RealStage } from "./conformance-stage.ts";
import { faultsOf } from "./faults/cases.ts";
import { runFault } from "./faults/run-fault.ts";
import type { Verdict } from "./faults/run-fault.ts";
import { askOn } from "./faults/stage.ts";

/** A few of the corpus that `npm run e2e:faults -- ipvs` plays: each takes some seconds here. */
const RAN: readonly string[] = [
  "ipvs: FORWARD drops answers",
  "ipvs: FORWARD drops the pods' port, and no request comes by it",
  "a real server is removed",
  "a cluster IP is gone from kube-ipvs0",
];

/** Ask why packets don't arrive, and about one that does: what was broken is named, and nobody is blamed where that harms nobody. */
export async function checkWhy({ site, restartProxy }: RealStage): Promise<void> {
  const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"], protocols: ["TCP"] });
  const stage = askOn(site, "ipvs", settingsFlags(STAGE_SETTINGS), service);
  const faults = faultsOf(stage).filter(({ name }) => RAN.includes(name));
  assert.equal(faults.length, RAN.length, "the corpus has faults of other names now");
  try {
    const verdicts: Verdict[] = [];
    for (const ran of faults) verdicts.push(await runFault(stage, ran));
    assert.deepEqual(
      verdicts.filter(({ isRight }) => !isRight),
      [],
    );
  } finally {
    // It was ended for what is in the kernel.
    await restartProxy();
    await site.waitForSync();
    await service.remove();
  }
}
