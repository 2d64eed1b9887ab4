import { beforeEach, describe, expect, it } from "vitest";
import type { HnsCalls, KindCalls, Out, Pointer } from "./calls.ts";
import { WindowsHns } from "./windows-hns.ts";

const never = new AbortController().signal;
const IDS = ["00000000-0000-0000-0000-00000000000a", "00000000-0000-0000-0000-00000000000b"];
const [NOT_FOUND, RPC_DOWN] = [0x80070490, 0x800706ba].map((code) => code | 0) as [number, number];

/** Memory of C and handles of HNS, counted; every call is noted, and answers `results`, by default success. */
class FakeWindows implements HnsCalls {
  readonly calls: string[] = [];
  readonly texts = new Map<Pointer, string>();
  readonly handles = new Set<Pointer>();
  readonly results = new Map<string, { readonly hresult?: number; readonly record?: string; readonly text?: string | null }>();
  /** Before a call of this name answers. */
  readonly holds = new Map<string, Promise<void>>();
  readonly kinds = { network: this.#kind("Network"), endpoint: this.#kind("Endpoint"), loadBalancer: this.#kind("LoadBalancer") };
  #next = 1n;

  createEndpoint(_network: Pointer, _id: Buffer, _settings: string, handle: Out, record: Out): Promise<number> {
    return this.#opens("CreateEndpoint", handle, record);
  }

  deleteEndpoint(id: Buffer, record: Out): Promise<number> {
    return this.#done(`DeleteEndpoint ${id[15]}`, record);
  }

  createLoadBalancer(_id: Buffer, _settings: string, handle: Out, record: Out): Promise<number> {
    return this.#opens("CreateLoadBalancer", handle, record);
  }

  modifyLoadBalancer(_handle: Pointer, _settings: string, record: Out): Promise<number> {
    return this.#done("ModifyLoadBalancer", record);
  }

  deleteLoadBalancer(id: Buffer, record: Out): Promise<number> {
    return this.#done(`DeleteLoadBalancer ${id[15]}`, record);
  }

  call(_method: string, _path: string, _body: string, response: Out): Promise<number> {
    return this.#gives("HNSCall", "{}", response, [null]);
  }

  textAt(pointer: Pointer): string {
    return this.texts.get(pointer) ?? "";
  }

  free(pointer: Pointer): void {
    if (!this.texts.delete(pointer)) throw new Error("freed twice");
  }

  #kind(name: string): KindCalls {
    return {
      enumerate: (_query, ids, record) => this.#gives(`Enumerate${name}s`, JSON.stringify(IDS), ids, record),
      open: (id, handle, record) => this.#opens(`Open${name} ${id[15]}`, handle, record),
      properties: (_handle, _query, text, record) => this.#gives(`Query${name}Properties`, `${name}!`, text, record),
      close: async (handle) => {
        if (!this.handles.delete(handle)) throw new Error("closed twice");
        return await this.#done(`Close${name}`, [null]);
      },
    };
  }

  async #done(call: string, record: Out): Promise<number> {
    this.calls.push(call);
    await this.holds.get(call);
    const { hresult = 0, record: said } = this.results.get(call) ?? {};
    if (said !== undefined) record[0] = this.#text(said);
    return hresult;
  }

  async #gives(call: string, usual: string, given: Out, record: Out): Promise<number> {
    const { hresult = 0, text = hresult < 0 ? null : usual } = this.results.get(call) ?? {};
    if (text !== null) given[0] = this.#text(text);
    return await this.#done(call, record);
  }

  async #opens(call: string, handle: Out, record: Out): Promise<number> {
    if ((this.results.get(call)?.hresult ?? 0) >= 0) {
      handle[0] = this.#next++;
      this.handles.add(handle[0]);
    }
    return await this.#done(call, record);
  }

  #text(text: string): Pointer {
    this.texts.set(this.#next, text);
    return this.#next++;
  }
}

let windows: FakeWindows;
let hns: WindowsHns;

beforeEach(() => {
  windows = new FakeWindows();
  hns = new WindowsHns(() => windows);
});

/** How many strings and handles are left. */
function left(): readonly number[] {
  return [windows.texts.size, windows.handles.size];
}

describe("HNS by the functions of Windows", () => {
  it("lists what it enumerates, and closes and frees all of it", async () => {
    expect(await hns.list("endpoint", never)).toEqual(["Endpoint!", "Endpoint!"]);
    const one = (id: number): readonly string[] => [`OpenEndpoint ${id}`, "QueryEndpointProperties", "CloseEndpoint"];
    expect(windows.calls).toEqual(["EnumerateEndpoints", ...one(10), ...one(11)]);
    expect(left()).toEqual([0, 0]);
  });

  it.each([null, "", "[]"])("knows that there are none by %j", async (text) => {
    windows.results.set("EnumerateNetworks", { text });
    expect(await hns.list("network", never)).toEqual([]);
  });

  it("leaves out what went since it was enumerated, and nothing else", async () => {
    windows.results.set("OpenLoadBalancer 10", { hresult: NOT_FOUND });
    expect(await hns.list("loadBalancer", never)).toEqual(["LoadBalancer!"]);
    windows.results.set("OpenLoadBalancer 10", { hresult: RPC_DOWN });
    await expect(hns.list("loadBalancer", never)).rejects.toMatchObject({ failure: "down", detail: "HcnOpenLoadBalancer gives no reason" });
  });

  it.each(["QueryEndpointProperties", "CreateEndpoint"])("lets go of everything when %s fails, and tells its record", async (call) => {
    const record = JSON.stringify({ Success: false, Error: "The IP address is invalid. ", ErrorCode: 0x803b001e });
    windows.results.set(call, { hresult: 0x803b001e | 0, record });
    const made = hns.createEndpoint(IDS[0] as string, "{}", never);
    await expect(made).rejects.toMatchObject({ name: "HnsError", hresult: 0x803b001e, detail: "The IP address is invalid." });
    expect(left()).toEqual([0, 0]);
  });

  it("takes a record for a failure, whatever the HRESULT, and closes the handle that came with it", async () => {
    windows.results.set("CreateLoadBalancer", { record: '{"Error":"half done"}' });
    await expect(hns.createLoadBalancer("{}", never)).rejects.toMatchObject({ detail: "half done" });
    expect(left()).toEqual([0, 0]);
  });

  it("changes and deletes by id", async () => {
    expect(await hns.modifyLoadBalancer(IDS[1] as string, "{}", never)).toBe("LoadBalancer!");
    await hns.remove("loadBalancer", IDS[1] as string, never);
    await hns.remove("endpoint", IDS[0] as string, never);
    const changed = ["OpenLoadBalancer 11", "ModifyLoadBalancer", "QueryLoadBalancerProperties", "CloseLoadBalancer"];
    expect(windows.calls).toEqual([...changed, "DeleteLoadBalancer 11", "DeleteEndpoint 10"]);
    expect(left()).toEqual([0, 0]);
  });

  it("keeps the order of calls, also after one that failed", async () => {
    windows.results.set("DeleteEndpoint 10", { hresult: RPC_DOWN });
    const first = hns.remove("endpoint", IDS[0] as string, never);
    const second = hns.remove("endpoint", IDS[1] as string, never);
    await expect(first).rejects.toMatchObject({ failure: "down" });
    await second;
    expect(windows.calls).toEqual(["DeleteEndpoint 10", "DeleteEndpoint 11"]);
  });

  it("lets whoever aborts go at once, and begins nothing for it", async () => {
    const held = Promise.withResolvers<undefined>();
    windows.holds.set("DeleteEndpoint 10", held.promise);
    const stop = new AbortController();
    const under = hns.remove("endpoint", IDS[0] as string, stop.signal);
    const waiting = hns.remove("endpoint", IDS[1] as string, stop.signal);
    await expect.poll(() => windows.calls).toEqual(["DeleteEndpoint 10"]);
    stop.abort();
    await expect(under).rejects.toMatchObject({ code: "canceled" });
    await expect(waiting).rejects.toMatchObject({ code: "canceled" });
    await expect(hns.version(stop.signal)).rejects.toMatchObject({ code: "canceled" });
    held.resolve(undefined);
    expect(await hns.version(never)).toBe("{}");
    expect(windows.calls).toEqual(["DeleteEndpoint 10", "HNSCall"]);
  });

  it("is closed when the call under way has given back what it holds, or nobody waits any longer", async () => {
    const held = Promise.withResolvers<undefined>();
    windows.holds.set("DeleteEndpoint 10", held.promise);
    const stop = new AbortController();
    const under = hns.remove("endpoint", IDS[0] as string, stop.signal);
    await expect.poll(() => windows.calls).toEqual(["DeleteEndpoint 10"]);
    stop.abort();
    await expect(under).rejects.toMatchObject({ code: "canceled" });
    await expect(hns.close(AbortSignal.timeout(20))).rejects.toMatchObject({ code: "canceled" });
    let isClosed = false;
    const closed = hns.close(never).then(() => (isClosed = true));
    await Promise.resolve();
    expect(isClosed).toBe(false);
    held.resolve(undefined);
    await closed;
  });

  it("tries to load its libraries again", async () => {
    let isThere = false;
    const late = new WindowsHns(() => {
      if (!isThere) throw new Error("not there");
      return windows;
    });
    await expect(late.version(never)).rejects.toThrow("not there");
    isThere = true;
    expect(await late.version(never)).toBe("{}");
  });
});
