import { ProxyError, type Issue, type Store } from "@turnout/core";
import { GlobalState } from "./global-state.ts";
import { ItemImage } from "./item-image.ts";
import { LocalState } from "./local-state.ts";

/** An image, while somebody holds it. */
export interface ImageLease {
  readonly image: ItemImage;
  /** Let go; once. */
  release(): void;
}

/** Objects that are remembered to have been reported. */
const SAID_MAX = 10_000;

/** The images of a node-state server: one for each node that is asked for, one for the cluster; there while they are watched. */
export class ImageRegistry {
  readonly #store: Store;
  readonly #imagesMax: number;
  readonly #entries = new Map<string, { readonly image: ItemImage; watchers: number }>();

  readonly #report: (issue: Issue) => void;
  readonly #said = new Map<string, string>();

  /** `report` hears of contested addresses, each once however many nodes see it. */
  constructor(store: Store, imagesMax: number, report: (issue: Issue) => void) {
    this.#store = store;
    this.#imagesMax = imagesMax;
    this.#report = report;
  }

  /** Images held at this moment. */
  get size(): number {
    return this.#entries.size;
  }

  /** Hold what one node is told. @throws {ProxyError} `limit_reached` when so many others are watched. */
  acquireNode(nodeName: string): ImageLease {
    return this.#acquire(`node ${nodeName}`, () => new LocalState(this.#store, nodeName, this.#reportOnce));
  }

  /** Hold what is said of the cluster. @throws {ProxyError} as {@link acquireNode}. */
  acquireCluster(): ImageLease {
    return this.#acquire("cluster", () => new GlobalState(this.#store, this.#reportOnce));
  }

  readonly #reportOnce = (issue: Issue): void => {
    if (this.#said.get(issue.object) === issue.what) return;
    if (this.#said.size >= SAID_MAX) this.#said.clear();
    this.#said.set(issue.object, issue.what);
    this.#report(issue);
  };

  #acquire(key: string, makeState: () => LocalState | GlobalState): ImageLease {
    const known = this.#entries.get(key);
    if (known === undefined && this.#entries.size >= this.#imagesMax) {
      throw new ProxyError(
        "limit_reached",
        `this node-state server holds ${this.#imagesMax} nodes' states for kpng's protocols already, and no more at a time`,
        {
          hint: "ask by turnout.node.v1, which holds no state, or run a node-state server on each node",
        },
      );
    }
    const entry = known ?? { image: new ItemImage(this.#store, makeState()), watchers: 0 };
    this.#entries.set(key, entry);
    entry.watchers += 1;
    return {
      image: entry.image,
      release: () => {
        entry.watchers -= 1;
        if (entry.watchers > 0) return;
        this.#entries.delete(key);
        entry.image.close();
      },
    };
  }
}
