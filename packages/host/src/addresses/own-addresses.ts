import { FAMILIES, ProxyError } from "@turnout/core";
import type { Exec, IPFamily } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import type { Mutex } from "../netlink/mutex.ts";

const FLAG: Readonly<Record<IPFamily, string>> = { IPv4: "-4", IPv6: "-6" };
/**
 * They are never chosen as the source of what we send elsewhere, as other nodes have them too. A dummy device has no neighbours, so there is
 * nobody to ask whether an address is taken. @source ip-address(8); RFC 6724 section 5 rule 3
 */
const NEVER_SOURCE: Readonly<Record<IPFamily, string>> = { IPv4: "scope host", IPv6: "nodad preferred_lft 0" };
const TAIL: Readonly<Record<IPFamily, string>> = { IPv4: "/32", IPv6: "/128" };

/** A device that holds a backend's own addresses. */
export interface OwnDevice {
  /** e.g. `turnout0`; up to 15 characters. */
  readonly name: string;
  /** What to try when something else has that name. */
  readonly hint: string;
}

/**
 * One family's addresses on a device of our own, so that what is sent to them ends on this host. Nothing else of the host is ever changed.
 *
 * Shape: a dummy device, or a bridge without ports where the kernel has no dummy devices; it is made with the first address.
 */
export class OwnAddresses {
  readonly #world: { readonly exec: Exec; readonly netlink: Pick<Netlink, "addresses"> };
  readonly #family: IPFamily;
  readonly #mutex: Mutex;
  readonly #device: string;
  readonly #hint: string;

  /** @param mutex shared by both families: the device is theirs together */
  constructor(
    world: { readonly exec: Exec; readonly netlink: Pick<Netlink, "addresses"> },
    { name, hint }: OwnDevice,
    family: IPFamily,
    mutex: Mutex,
  ) {
    this.#world = world;
    this.#device = name;
    this.#hint = hint;
    this.#family = family;
    this.#mutex = mutex;
  }

  /** Those that are there now. */
  async list(): Promise<readonly string[]> {
    return await this.#listOf(this.#family);
  }

  /** Put addresses on the device, which is made when it isn't there. @throws {ProxyError} what `ip` complains about; some may be there. */
  async add(ips: readonly string[], signal: AbortSignal): Promise<void> {
    if (ips.length === 0) return;
    await this.#mutex.run(async () => {
      // Looked at anew each time: somebody may have removed it.
      await this.#makeDevice(signal);
      await this.#batch(
        [`link set ${this.#device} addrgenmode none`, `link set ${this.#device} up`].concat(
          ips.map((ip) => `address replace ${ip}${TAIL[this.#family]} dev ${this.#device} ${NEVER_SOURCE[this.#family]}`),
        ),
        signal,
      );
    });
  }

  /** Take addresses off. @throws {ProxyError} what `ip` complains about; some may be gone. */
  async remove(ips: readonly string[], signal: AbortSignal): Promise<void> {
    if (ips.length === 0) return;
    await this.#batch(
      ips.map((ip) => `address del ${ip}${TAIL[this.#family]} dev ${this.#device}`),
      signal,
    );
  }

  /** Take all of this family off, and remove the device when nothing of the other family is left on it. */
  async removeAll(signal: AbortSignal): Promise<void> {
    await this.#mutex.run(async () => {
      const own = await this.list();
      const others = (await Promise.all(FAMILIES.filter((family) => family !== this.#family).map((family) => this.#listOf(family)))).flat();
      if (others.length > 0) await this.remove(own, signal);
      else if (await this.#isOurs(signal)) await this.#batch([`link del ${this.#device}`], signal);
    });
  }

  async #listOf(family: IPFamily): Promise<readonly string[]> {
    const all = await this.#world.netlink.addresses(family);
    return all.flatMap(({ ip, link }) => (link === this.#device && !ip.startsWith("fe80:") ? [ip] : []));
  }

  async #makeDevice(signal: AbortSignal): Promise<void> {
    if (await this.#isOurs(signal)) return;
    try {
      await this.#batch([`link add ${this.#device} type dummy`], signal);
    } catch (error) {
      if (!isUnknownKind(error)) throw error;
      // A kernel without dummy devices: a bridge without ports is as good a place.
      await this.#batch([`link add ${this.#device} type bridge`], signal);
    }
  }

  /** Whether the device is there. @throws {ProxyError} `host_unsupported` when something else has its name. */
  async #isOurs(signal: AbortSignal): Promise<boolean> {
    const { code, stdout } = await this.#world.exec.run("ip", ["-d", "-o", "link", "show", "dev", this.#device], { signal });
    if (code !== 0) return false;
    if (/\s(?:dummy|bridge)\s/.test(stdout)) return true;
    throw new ProxyError("host_unsupported", "a device that isn't ours has our name", {
      object: this.#device,
      hint: this.#hint,
    });
  }

  async #batch(lines: readonly string[], signal: AbortSignal): Promise<void> {
    const { code, stderr } = await this.#world.exec.run("ip", [FLAG[this.#family], "-batch", "-"], {
      input: `${lines.join("\n")}\n`,
      signal,
    });
    if (code !== 0) throw ipError(code, stderr, this.#device);
  }
}

/** Say what `ip` complained about; the first line is its reason. Pure. */
function ipError(code: number, stderr: string, device: string): ProxyError {
  const [complaint = ""] = stderr.trim().split("\n");
  return new ProxyError("tool_failed", `ip failed with code ${code} (${complaint.slice(0, 200)})`, { object: device });
}

/** Whether `ip` was refused a device because the kernel knows no such kind. Pure. */
function isUnknownKind(error: unknown): boolean {
  return (
    ProxyError.is(error, "tool_failed") && /\((?:Error: Unknown device type|RTNETLINK answers: Operation not supported)/.test(error.what)
  );
}
