import { ebpfModule } from "@turnout/backend-ebpf";
import { iptablesModule } from "@turnout/backend-iptables";
import { nftModule } from "@turnout/backend-nft";
import type { BackendModule } from "@turnout/core";
import { HOST_ADDRESSES, PLACES, STAGE_NODE, STAGE_OBJECTS, STAGE_RANGES, UPLINK } from "@turnout/conformance";
import { leftOut, needs } from "@turnout/house/needs";
import { planCluster, RANGES } from "@turnout/lab";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { castsOf, scenariosFor, castInWords } from "./conformance-casting.ts";
import { createStagePool } from "./conformance-pool.ts";
import type { StagePool } from "./conformance-pool.ts";
import { execute } from "./conformance-run.ts";
import type { Dataplane } from "./conformance-stage.ts";
import type { Layout } from "./layout.ts";

/** What is played on: one entry a backend that this machine can run. */
interface Subject extends Dataplane {
  readonly name: string;
  readonly module: BackendModule;
  readonly needs: readonly string[];
  /** `npm test` runs one scenario of so many, `npm run test:rest` and the full run all. */
  readonly oneOf: number;
}

/** The iptables backend with one variant of the tool. */
function iptablesSubject(variant: "legacy" | "nft"): Subject {
  return {
    name: `iptables, ${variant} variant`,
    module: iptablesModule,
    flags: ["--backend", "iptables", "--backend-option", `variant=${variant}`],
    needs: [`iptables-${variant}>=1.8.0`],
    oneOf: 40,
  };
}

/** The eBPF backend in one of the layouts. */
function ebpfSubject(layout: Layout): Subject {
  return {
    name: `ebpf, ${layout}`,
    module: ebpfModule,
    flags: ["--backend", "ebpf"],
    needs: ["bpf", "cgroup2", "nft>=1.0.1", "nsenter", "unshare"],
    oneOf: 60,
    layout,
    servesCgroup: true,
    isInParts: true,
  };
}

const SUBJECTS: readonly Subject[] = [
  {
    name: "nft",
    module: nftModule,
    flags: ["--backend", "nft"],
    needs: ["nft>=1.0.1"],
    oneOf: 20,
  },
  iptablesSubject("legacy"),
  iptablesSubject("nft"),
  ebpfSubject("one process"),
  ebpfSubject("two processes"),
];

/** Stages side by side: while one waits for silence, another works. */
const STAGES = 3;

/** Longest a scenario may take, the wait for a stage included. */
const TIMEOUT_MS = 300_000;

const SHAPE = { nodes: [1, 2].map((node) => ({ name: `node${node}`, zone: `zone-${node === 1 ? "a" : "b"}`, pods: 3 })), clients: 2 };

it("the kit's stage is the laboratory's cluster", () => {
  const plan = planCluster(SHAPE);
  const linkOf = (name: string): string =>
    plan.links.find(({ router, leaf }) => router === STAGE_NODE && leaf === name)?.routerLink ?? UPLINK;
  const places = plan.places
    .filter(({ kind }) => kind !== "fabric")
    .map(({ name, kind, node, addresses }) => ({
      name,
      kind,
      addresses,
      ...(kind === "client" ? {} : { node: node ?? name }),
      link: name === STAGE_NODE ? "" : linkOf(name),
    }));
  const byName = (a: { readonly name: string }, b: { readonly name: string }): number => a.name.localeCompare(b.name);
  expect(PLACES.toSorted(byName)).toEqual(places.toSorted(byName));
  expect(STAGE_RANGES).toEqual({ pods: RANGES.pods, services: RANGES.services, external: RANGES.external });
  const own = plan.places.find(({ name }) => name === STAGE_NODE)?.addresses;
  expect(HOST_ADDRESSES).toEqual({ IPv4: ["127.0.0.1", own?.IPv4], IPv6: ["::1", own?.IPv6] });
  const podCIDRs = STAGE_OBJECTS.filter(({ kind }) => kind === "Node").map(({ spec }) => spec);
  expect(podCIDRs).toEqual(plan.places.filter(({ kind }) => kind === "node").map((node) => ({ podCIDRs: node.podCIDRs })));
});

for (const subject of SUBJECTS) {
  describe(`the kit's scenarios over real packets: ${subject.name}`, needs("root", "ip", "conntrack", ...subject.needs), () => {
    let pool: StagePool;
    beforeAll(async () => {
      pool = await createStagePool(STAGES, subject);
    });
    afterAll(() => pool?.destroy());

    for (const scenario of scenariosFor(subject.module, subject.oneOf)) {
      const casts = castsOf(scenario, subject.module, subject.name === "nft");
      const options = scenario.fakeOnly === undefined ? { timeout: TIMEOUT_MS } : leftOut("fake-host", scenario.fakeOnly);
      it.concurrent(`${scenario.name}${castInWords(casts)}`, options, async () => {
        expect(await pool.use(scenario, (stage) => execute(scenario, { stage, module: subject.module, casts }))).toEqual([]);
      });
    }
  });
}
