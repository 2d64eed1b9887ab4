import type { Libbpf } from "../bpf/libbpf-calls.ts";

/** A libbpf of which only what is given can be called: for what no kernel at hand does. */
export function stubLibbpf(calls: Partial<Libbpf>): Libbpf {
  return new Proxy(calls, {
    get(target, name): unknown {
      if (name in target) return target[name as keyof Libbpf];
      throw new Error(`${String(name)} isn't expected to be called`);
    },
  }) as Libbpf;
}
