import { REMOTE_ENDPOINT } from "../hns/flags.ts";
import type { FakeEndpoint, FakeHns, FakeLoadBalancer } from "./fake-hns.ts";

type Random = () => number;

/** A foreign hand does one thing to what is ours; undefined: there is nothing of the sort that it was going to touch. */
export function tamperWith(hns: FakeHns, networkId: string, random: Random): string | undefined {
  const isExternal = (id: string): boolean => {
    const network = hns.endpoints.get(id)?.settings.HostComputeNetwork;
    return network !== undefined && network !== networkId;
  };
  const balancers = [...hns.balancers.values()].filter(({ settings }) => !settings.HostComputeEndpoints.some(isExternal));
  const remotes = [...hns.endpoints.values()].filter(
    ({ settings }) => settings.Flags === REMOTE_ENDPOINT && settings.HostComputeNetwork === networkId,
  );
  const acts: readonly (() => string | undefined)[] = [
    () => deleteBalancer(hns, pick(balancers, random)),
    () => changeBalancer(hns, pick(balancers, random), random),
    () => leakBalancer(hns, pick(balancers, random)),
    () => deleteEndpoint(hns, pick(remotes, random)),
    () => doubleEndpoint(hns, pick(remotes, random)),
  ];
  const first = Math.floor(random() * acts.length);
  for (let tries = 0; tries < acts.length; tries++) {
    const done = acts[(first + tries) % acts.length]?.();
    if (done !== undefined) return done;
  }
  return undefined;
}

function pick<T>(all: readonly T[], random: Random): T | undefined {
  return all[Math.floor(random() * all.length)];
}

function deleteBalancer(hns: FakeHns, one: FakeLoadBalancer | undefined): string | undefined {
  if (one === undefined) return undefined;
  hns.balancers.delete(one.id);
  return `deleted load balancer ${one.id}`;
}

function changeBalancer(hns: FakeHns, one: FakeLoadBalancer | undefined, random: Random): string | undefined {
  if (one === undefined) return undefined;
  const { settings } = one;
  const ids = settings.HostComputeEndpoints;
  const changed =
    ids.length > 1 && random() < 0.5
      ? { ...settings, HostComputeEndpoints: ids.slice(1) }
      : { ...settings, PortMappings: settings.PortMappings.map((port) => ({ ...port, InternalPort: port.InternalPort === 1 ? 2 : 1 })) };
  hns.balancers.set(one.id, { ...one, settings: changed });
  return `changed load balancer ${one.id}`;
}

/** As kube-proxy leaves one behind: an address that nobody wants, or not any more. */
function leakBalancer(hns: FakeHns, one: FakeLoadBalancer | undefined): string | undefined {
  if (one === undefined) return undefined;
  const [port] = one.settings.PortMappings;
  if (port === undefined) return undefined;
  const externalPort = port.ExternalPort === 65_535 ? 1 : port.ExternalPort + 1_000;
  const { Flags: flags, ...others } = one.settings;
  const settings = { ...others, ...(flags === undefined ? {} : { Flags: flags }), PortMappings: [{ ...port, ExternalPort: externalPort }] };
  return `leaked load balancer ${hns.addBalancer(settings)}`;
}

/** Those in use stay. */
function deleteEndpoint(hns: FakeHns, one: FakeEndpoint | undefined): string | undefined {
  if (one === undefined) return undefined;
  if ([...hns.balancers.values()].some(({ settings }) => settings.HostComputeEndpoints.includes(one.id))) return undefined;
  hns.endpoints.delete(one.id);
  return `deleted endpoint ${one.id}`;
}

function doubleEndpoint(hns: FakeHns, one: FakeEndpoint | undefined): string | undefined {
  return one === undefined ? undefined : `made endpoint ${one.id} again: ${hns.addEndpoint(one.settings)}`;
}
