import assert from "node:assert/strict";
import type { IPFamily } from "@turnout/core";
import { STAGE_NODE } from "@turnout/conformance";
import type { RealStage } from "./conformance-stage.ts";
import { answersAfter, isSoonSo } from "./ipvs-held.ts";
import type { TestService } from "./services.ts";

/** Not the port of other servers, so that these alone are ended. */
const PORT = 9_000;
const ASKER = "pod-1-3";
const BOTH: readonly string[] = ["pod-1-1", "pod-1-2"];
const NEW_CONNECTIONS = 8;

/**
 * Take an endpoint away that has a connection, and see that the connection goes on while new ones go elsewhere, also over a restart of the proxy; that
 * the endpoint is as before if it returns meanwhile, and that its real server goes with its last connection.
 */
export async function checkDraining({ site, restartProxy }: RealStage, family: IPFamily): Promise<void> {
  for (const name of BOTH) await site.place(name).agent().serve({ name, transport: "TCP", port: PORT });
  const service = await site.services.create({ endpoints: BOTH, ways: [], protocols: ["TCP"], targetPort: PORT });
  const asker = site.place(ASKER).agent();
  const target = service.target("clusterIP", family);
  const weights = (): Promise<Readonly<Record<string, number>>> => weightsOf(site, service, family);
  try {
    const held = await asker.hold({ ...target, everyMs: 100 });
    // Who serves is known with the first answers.
    const { server: leaving } = await answersAfter(() => asker.holdStatus(held), 0);
    const staying = BOTH.find((name) => name !== leaving) ?? "";
    assert.ok(BOTH.includes(leaving));
    let answers = 0;
    const expectHeld = async (): Promise<void> => {
      const { state, answers: now } = await answersAfter(() => asker.holdStatus(held), answers);
      assert.equal(state, "open");
      answers = now;
    };
    const expectElsewhere = async (): Promise<void> => {
      const { servers, failed } = await asker.burst({ ...target, count: NEW_CONNECTIONS });
      assert.deepEqual({ servers, failed }, { servers: { [staying]: NEW_CONNECTIONS }, failed: {} });
    };

    await service.setEndpoints([staying]);
    assert.deepEqual(await weights(), { [leaving]: 0, [staying]: 1 });
    await expectHeld();
    await expectElsewhere();

    await service.setEndpoints(BOTH);
    assert.deepEqual(await weights(), { [leaving]: 1, [staying]: 1 });
    await expectHeld();

    await service.setEndpoints([staying]);
    await restartProxy();
    await site.waitForSync();
    assert.deepEqual(await weights(), { [leaving]: 0, [staying]: 1 });
    await expectHeld();
    await expectElsewhere();

    // The new proxy found it on its way out, and takes it back all the same.
    await service.setEndpoints(BOTH);
    assert.deepEqual(await weights(), { [leaving]: 1, [staying]: 1 });
    await service.setEndpoints([staying]);
    await expectHeld();
    assert.deepEqual(await weights(), { [leaving]: 0, [staying]: 1 });
    // A connection that is closed in peace is remembered for two minutes, one that is reset for ten seconds.
    await site.place(leaving).agent().stop({ transport: "TCP", port: PORT, how: "reset" });
    await isSoonSo(async () => Object.keys(await weights()).length === 1);
    assert.deepEqual(await weights(), { [staying]: 1 });
    assert.equal((await asker.release(held)).state, "reset");
    await site.place(staying).agent().stop({ transport: "TCP", port: PORT, how: "reset" });
  } finally {
    await service.remove();
  }
}

/** The weights of the real servers of a Service's cluster IP, by the names of their places. */
async function weightsOf(site: RealStage["site"], service: TestService, family: IPFamily): Promise<Readonly<Record<string, number>>> {
  const { address, port } = service.target("clusterIP", family);
  const virtual = family === "IPv4" ? `${address}:${port}` : `[${address}]:${port}`;
  const { stdout } = await site.cluster.node(STAGE_NODE).run("ipvsadm", ["-Ln", "-t", virtual]);
  const servers = [...stdout.matchAll(/^ +-> \[?([\da-f.:]+?)\]?:\d+ +Masq +(\d+)/gm)];
  return Object.fromEntries(servers.map(([, ip = "", weight]) => [site.nameOf(ip), Number(weight)]));
}
