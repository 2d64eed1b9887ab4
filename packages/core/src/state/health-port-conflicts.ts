import type { Issue, Service } from "../model/api-objects.ts";

/** Services by a port that they have, by `namespace/name`. */
class ServicesByPort {
  readonly #services = new Map<number, Set<string>>();

  add(port: number, key: string): void {
    const services = this.#services.get(port);
    if (services === undefined) this.#services.set(port, new Set([key]));
    else services.add(key);
  }

  delete(port: number, key: string): void {
    const services = this.#services.get(port);
    services?.delete(key);
    if (services?.size === 0) this.#services.delete(port);
  }

  get(port: number): Iterable<string> {
    return this.#services.get(port) ?? [];
  }
}

/**
 * Reports health check node ports that are node ports of other Services: load balancers that ask them reach the other Service.
 *
 * Edges: each such port is reported once, until it is no longer both or the report would name other Services.
 * @source rule R-51
 */
export class HealthPortConflicts {
  readonly #report: (issue: Issue) => void;
  /** Of TCP, as health checks are. */
  readonly #nodePorts = new ServicesByPort();
  readonly #healthPorts = new ServicesByPort();
  readonly #said = new Map<number, Issue>();

  constructor(report: (issue: Issue) => void) {
    this.#report = report;
  }

  /** The conflicts that there are now. */
  issues(): Iterable<Issue> {
    return this.#said.values();
  }

  /** Put a Service in, change it or (undefined) take it out. */
  set(key: string, before: Service | undefined, after: Service | undefined): void {
    const [former, now] = [portsOf(before), portsOf(after)];
    for (const port of former.node) this.#nodePorts.delete(port, key);
    for (const port of former.health) this.#healthPorts.delete(port, key);
    for (const port of now.node) this.#nodePorts.add(port, key);
    for (const port of now.health) this.#healthPorts.add(port, key);
    for (const port of new Set([...former.node, ...former.health, ...now.node, ...now.health])) this.#look(port);
  }

  #look(port: number): void {
    for (const asked of this.#healthPorts.get(port)) {
      for (const holder of this.#nodePorts.get(port)) {
        if (asked === holder) continue;
        const issue = issueOf(port, asked, holder);
        const said = this.#said.get(port);
        if (said?.object === issue.object && said.what === issue.what) return;
        this.#said.set(port, issue);
        this.#report(issue);
        return;
      }
    }
    this.#said.delete(port);
  }
}

function portsOf(service: Service | undefined): { readonly node: readonly number[]; readonly health: readonly number[] } {
  const { ports = [], healthCheckNodePort = 0 } = service ?? {};
  const node = ports.flatMap(({ protocol, nodePort }) => (protocol === "TCP" && nodePort !== 0 ? nodePort : []));
  return { node, health: healthCheckNodePort === 0 ? [] : [healthCheckNodePort] };
}

function issueOf(port: number, asked: string, holder: string): Issue {
  const hint = "give one of them another port";
  const note = `health check node port ${port} of Service ${asked} is also a node port of Service ${holder}: load balancers that check it reach ${holder}; ${hint}`;
  return {
    object: `Service ${asked}`,
    what: `its health check node port ${port} is also a node port of Service ${holder}: load balancers that check it reach that Service`,
    hint,
    events: [asked, holder].map((service) => ({ reason: "AddressContested", service, note })),
  };
}
