import { hostPort } from "../model/addresses.ts";
import type { Claimant, ClaimedAddress, LostClaim } from "./claims.ts";
import type { Issue } from "../model/api-objects.ts";

type Named = Pick<Claimant, "name">;

/** In words, as what somebody has a place. */
const AS: Readonly<Record<LostClaim["wonAs"], string>> = {
  clusterIP: "cluster IP",
  nodePort: "node port",
  loadBalancerIP: "load-balancer IP",
  externalIP: "external IP",
  serviceRange: "",
};

/**
 * Reports which rows go without an address: once, until they have it again.
 *
 * Edges: that an address passes from one winner to another is no news to those who go without either way.
 */
export class LostClaimReports {
  readonly #said = new Map<string, { readonly lost: ReadonlySet<string>; readonly issue: Issue }>();
  readonly #report: ((issue: Issue) => void) | undefined;

  constructor(report: ((issue: Issue) => void) | undefined) {
    this.#report = report;
  }

  /** What rows go without now. */
  *issues(): Iterable<Issue> {
    for (const { issue } of this.#said.values()) yield issue;
  }

  /** Note what a row has lost now; `row` may be undefined when that is nothing. */
  note(key: string, row: Named | undefined, lost: readonly LostClaim[]): void {
    const said = this.#said.get(key);
    if (row === undefined || lost.length === 0) {
      if (said !== undefined) this.#said.delete(key);
      return;
    }
    const news = lost.filter(({ destination }) => said?.lost.has(destinationName(destination, row)) !== true);
    const names = new Set(lost.map(({ destination }) => destinationName(destination, row)));
    this.#said.set(key, { lost: names, issue: issueOf(key, row, lost) });
    if (news.length > 0) this.#report?.(issueOf(key, row, news));
  }
}

function issueOf(key: string, row: Named, lost: readonly LostClaim[]): Issue {
  const text = lost.map((claim) => `${destinationName(claim.destination, row)} is ${ownerOf(claim)}`).join(", ");
  const hint = lost.every(({ wonAs }) => wonAs === "serviceRange")
    ? "give the Service an external IP outside of that range"
    : "give one of them another address or port; it comes back by itself when the other goes";
  return { object: `Service port ${key}`, what: `an address it can't have is left out: ${text}`, hint };
}

/** Name a destination for people: `10.96.0.1:80/TCP`, `node port 30080/TCP`. */
export function destinationName({ address, port }: Pick<ClaimedAddress, "address" | "port">, { name }: Named): string {
  return address === "" ? `node port ${port}/${name.protocol}` : `${hostPort(address, port)}/${name.protocol}`;
}

function ownerOf({ winner, wonAs }: LostClaim): string {
  return wonAs === "serviceRange" ? `in the service range ${winner}, where no external IP may be` : `${winner}'s ${AS[wonAs]}`;
}
