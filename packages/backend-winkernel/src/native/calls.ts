import type { HnsKind } from "../hns/host.ts";

/** A HANDLE of HNS, or a string in memory that is ours to free. */
export type Pointer = bigint;

/** Where C writes a pointer: its only element. A NULL is null, or 0n. */
export type Out = [Pointer | null];

/** An HRESULT: below 0 it is a failure. All calls block on RPC, so they are made on koffi's threads. */
export type Hresult = Promise<number>;

/** What HNS does with objects of one kind. `record` is where it writes why it failed. */
export interface KindCalls {
  enumerate(query: string, ids: Out, record: Out): Hresult;
  open(id: Buffer, handle: Out, record: Out): Hresult;
  properties(handle: Pointer, query: string, properties: Out, record: Out): Hresult;
  close(handle: Pointer): Hresult;
}

/** The functions of Windows that this backend calls: `computenetwork.dll`, and one of `vmcompute.dll` and `ole32.dll` each. */
export interface HnsCalls {
  readonly kinds: Readonly<Record<HnsKind, KindCalls>>;
  createEndpoint(network: Pointer, id: Buffer, settings: string, handle: Out, record: Out): Hresult;
  deleteEndpoint(id: Buffer, record: Out): Hresult;
  createLoadBalancer(id: Buffer, settings: string, handle: Out, record: Out): Hresult;
  modifyLoadBalancer(handle: Pointer, settings: string, record: Out): Hresult;
  deleteLoadBalancer(id: Buffer, record: Out): Hresult;
  /** The older API, which alone tells the version. */
  call(method: string, path: string, body: string, response: Out): Hresult;
  /** Read a string that a call gave. */
  textAt(pointer: Pointer): string;
  /** Free it; no other function of C may. */
  free(pointer: Pointer): void;
}
