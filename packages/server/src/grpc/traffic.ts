import { status } from "@grpc/grpc-js";
import type { Delivery } from "@turnout/client/protocol";

/** What a server has sent and refused since it was started; numbers only grow. */
export interface TrafficCounts {
  readonly changeSets: number;
  /** Of the change sets: those that were whole states. */
  readonly fullStates: number;
  /** Rows set and rows deleted in them. */
  readonly operations: number;
  /** Of messages, before HTTP/2 frames them. */
  readonly bytes: number;
  /** Streams that were ended with an error, by gRPC's name of it. */
  readonly refused: ReadonlyMap<string, number>;
}

/** Counts what all streams of a server send. */
export class Traffic implements TrafficCounts {
  changeSets = 0;
  fullStates = 0;
  operations = 0;
  bytes = 0;
  readonly refused: Map<string, number> = new Map<string, number>();

  /** A message was handed to its stream. */
  message(bytes: number): void {
    this.bytes += bytes;
  }

  /** The last part of a change set was handed to its stream. */
  changeSet({ changes: { full, set, delete: gone }, shared }: Delivery): void {
    // A node's own rows take the place of shared ones.
    const rows = shared === undefined ? set.length : shared.reduce((sum, { length }) => sum + length, 0);
    this.answer(rows + gone.length, full);
  }

  /** A change set of whatever protocol was handed to its stream. */
  answer(operations: number, isFull: boolean): void {
    this.changeSets += 1;
    if (isFull) this.fullStates += 1;
    this.operations += operations;
  }

  /** A stream was ended with an error. */
  refusal(code: status): void {
    const name = status[code];
    this.refused.set(name, (this.refused.get(name) ?? 0) + 1);
  }
}
