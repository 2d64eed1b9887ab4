import {
  FAMILIES,
  objectId,
  openDataplane,
  parseModule,
  probeModule,
  ProxyError,
  withWorldOf,
  type Backend,
  type BackendModule,
  type FlowFilter,
  type IPFamily,
  type KernelObject,
  type NodeContext,
  type World,
} from "@turnout/core";
import type { RunConfig } from "../config/run-config.ts";
import type { HostFiles } from "../host/host-files.ts";
import { wantedSettings } from "../host/host-settings.ts";
import { demandHost } from "../host/set-host.ts";

/** What {@link initializeHost} works with. */
export interface InitOptions {
  readonly config: RunConfig;
  readonly world: World;
  /** Undefined: this is no Linux. */
  readonly files: HostFiles | undefined;
  readonly signal: AbortSignal;
}

/**
 * Do once what takes full rights, as `--init-only` asks for: conntrack's settings, and the kernel parameters that the backend has without any Service.
 *
 * Shape: no API server is asked, and no rule written. A proxy that finds the parameters set needs not set them.
 * Edges: the process's own oom_score_adj is left alone, since it goes with the process.
 * @throws {ProxyError} `host_unsupported` elsewhere than on Linux, what keeps the backend from running here, and what can't be set.
 * @source kube-proxy cmd/kube-proxy/app/options.go InitAndExit; pkg/proxy/iptables/proxier.go, pkg/proxy/ipvs/proxier.go NewProxier with initOnly
 */
export async function initializeHost<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  { config, world, files, signal }: InitOptions,
): Promise<void> {
  parseModule(module, `backend ${module.name}`);
  if (files === undefined) throw new ProxyError("host_unsupported", "--init-only sets parameters of Linux, and this is no Linux");
  const settings = wantedSettings(config.hostSettings, files.cores).filter(({ path }) => !path.startsWith("/proc/self/"));
  await withWorldOf(module, world, async (own) => {
    const options = module.parseOptions(config.backendOptions);
    const { problems, capabilities, facts } = await probeModule(module, options, own, signal);
    if (problems[0] !== undefined) throw problems[0];
    const dataplane = await openDataplane(module, options, own, signal);
    try {
      const families = FAMILIES.filter((family) => capabilities[family] === true);
      const load = (): Promise<void> =>
        loadConntrack(
          families.map((family) => dataplane.family(family)),
          world,
          signal,
        );
      if (module.residence === "kernel") await demandHost(settings, files, world.log, load);
      for (const family of families) {
        const backend = dataplane.family(family);
        const parameters = backend.skeleton({ node: nodeOf(config, family), host: facts }).filter(({ kind }) => kind === "sysctl");
        if (parameters.length === 0) continue;
        const delta = { put: parameters.map((after) => ({ after })), remove: [], lingering: [], nowMs: world.clock.nowMs() };
        const { failed } = await backend.apply(backend.plan(delta), signal);
        for (const error of failed?.values() ?? []) throw error;
        world.log.info("kernel parameters were set", { family, parameters: parameters.map(objectId).join(", ") });
      }
    } finally {
      await dataplane.close(signal);
    }
  });
  world.log.info("the host is initialized, and --init-only was given: done");
}

/** Flows that no host has: to look for them is enough for the kernel to load conntrack. */
const NO_FLOWS: readonly FlowFilter[] = [{ protocol: "UDP", address: "", port: 1, keep: [], only: [] }];

/** Have the kernel load conntrack, by itself or when it is asked for flows. What comes of it shows in the files. */
async function loadConntrack(
  backends: readonly Pick<Backend<unknown, KernelObject, unknown>, "forgetFlows">[],
  { exec, log }: World,
  signal: AbortSignal,
): Promise<void> {
  const ways = [
    () => exec.run("modprobe", ["nf_conntrack"], { signal }),
    ...backends.map((backend) => () => backend.forgetFlows?.(NO_FLOWS, signal)),
  ];
  for (const way of ways) {
    try {
      await way();
    } catch (error) {
      if (!ProxyError.is(error) || error.code === "canceled") throw error;
      log.debug("conntrack may not be loaded", { error: error.message });
    }
  }
}

/** A node of which nothing is known but the settings. */
function nodeOf({ nodeName, settings }: RunConfig, family: IPFamily): NodeContext {
  return { name: nodeName, family, addresses: [], zone: "", podCIDRs: [], serviceCIDRs: [], detector: undefined, settings };
}
