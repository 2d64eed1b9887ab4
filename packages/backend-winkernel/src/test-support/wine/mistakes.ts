import koffiPackage from "koffi";
import type { HnsCalls, Out } from "../../native/calls.ts";
import type { Koffi } from "../../native/libraries.ts";

type Call = ReturnType<ReturnType<Koffi["load"]>["func"]>;

/** A mistake in the binding, made on purpose. */
export interface Mistake {
  /** In a declaration: what koffi is told instead. */
  readonly declaration?: (text: string) => string;
  /** Calls are made on the thread of JavaScript. */
  readonly isBlocking?: boolean;
  /** In what is called. */
  readonly calls?: (calls: HnsCalls) => HnsCalls;
}

function inLoadBalancers(calls: HnsCalls, change: Partial<HnsCalls["kinds"]["loadBalancer"]>): HnsCalls {
  return { ...calls, kinds: { ...calls.kinds, loadBalancer: { ...calls.kinds.loadBalancer, ...change } } };
}

/** The first three groups of a GUID as they are in its text. */
function swapped(id: Buffer): Buffer {
  const bytes = Buffer.from(id);
  bytes.subarray(0, 4).swap32();
  bytes.subarray(4, 8).swap16();
  return bytes;
}

/** Mistakes by what they are. */
export const MISTAKES: Readonly<Record<string, Mistake>> = {
  "a handle is not closed": { calls: (calls) => inLoadBalancers(calls, { close: () => Promise.resolve(0) }) },
  "a handle of one kind is closed as another": {
    calls: (calls) => inLoadBalancers(calls, { close: (handle) => calls.kinds.endpoint.close(handle) }),
  },
  "a text is not freed": { calls: (calls) => ({ ...calls, free: () => undefined }) },
  "a text is freed by the allocator of C": { calls: (calls) => ({ ...calls, free: (pointer) => koffiPackage.free(pointer) }) },
  "the record of an error is not freed": {
    calls: (calls) => ({
      ...calls,
      deleteLoadBalancer: async (id, record) => {
        const own: Out = [null];
        const result = await calls.deleteLoadBalancer(id, own);
        record[0] = null;
        return result;
      },
    }),
  },
  "a GUID is in the order of its text": {
    calls: (calls) => ({ ...calls, deleteLoadBalancer: (id, record) => calls.deleteLoadBalancer(swapped(id), record) }),
  },
  "an HRESULT is ignored": {
    calls: (calls) => ({
      ...calls,
      deleteLoadBalancer: async (id) => {
        await calls.deleteLoadBalancer(id, [null]);
        return 0;
      },
    }),
  },
  "calls keep everybody waiting": { isBlocking: true },
  "an HRESULT is unsigned": { declaration: (text) => text.replace("int32_t HcnDelete", "uint32_t HcnDelete") },
  "texts are bytes": { declaration: (text) => text.replace("str16 settings", "str settings") },
  "arguments are in another order": {
    declaration: (text) =>
      text.replace("HcnCreateLoadBalancer(const void *id, str16 settings", "HcnCreateLoadBalancer(str16 settings, const void *id"),
    calls: (calls) => {
      const create = calls.createLoadBalancer as (...args: readonly unknown[]) => Promise<number>;
      return { ...calls, createLoadBalancer: (id, settings, handle, record) => create(settings, id, handle, record) };
    },
  },
};

/** A call whose `async` is none. */
function blocking(call: Call): Call {
  const async = (...all: unknown[]): void => {
    const done = all.pop() as (error: null, result: unknown) => void;
    done(null, call(...all));
  };
  return Object.assign((...all: unknown[]): unknown => call(...all), { async }) as Call;
}

/** koffi as it is, or with other declarations. */
export function koffiWith({ declaration = (text) => text, isBlocking = false }: Mistake): Koffi {
  return {
    decode: koffiPackage.decode,
    load: (...args: Parameters<Koffi["load"]>): ReturnType<Koffi["load"]> => {
      const library = koffiPackage.load(...args);
      const func = ((text: string) => {
        const call = library.func(declaration(text));
        return isBlocking ? blocking(call) : call;
      }) as typeof library.func;
      return { ...library, func };
    },
  };
}
