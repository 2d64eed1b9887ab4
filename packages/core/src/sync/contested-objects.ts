import type { KernelObject } from "../contract/backend.ts";
import { isEqual } from "../model/equal.ts";

/** Identities wanted in several forms at once, with the forms of all their owners, the last one set at the end. */
export class ContestedObjects<K extends KernelObject> {
  readonly #forms = new Map<string, K[]>();

  get ids(): ReadonlySet<string> {
    return new Set(this.#forms.keys());
  }

  has(id: string): boolean {
    return this.#forms.size > 0 && this.#forms.has(id);
  }

  /** One owner more; until now so many owners had `wanted`, unless it was contested before. */
  add(id: string, object: K, wanted: K | undefined, owners: number): void {
    const forms = this.#forms.get(id) ?? Array.from({ length: owners }, () => wanted as K);
    forms.push(object);
    this.#forms.set(id, forms);
  }

  /** One owner less of something contested; what counts now is the last form that is left. */
  withdraw(id: string, object: K): K | undefined {
    const forms = this.#forms.get(id) ?? [];
    forms.splice(
      forms.findLastIndex((form) => form === object || isEqual(form.value, object.value)),
      1,
    );
    const last = forms.at(-1);
    if (forms.every((form) => isEqual(form.value, last?.value))) this.#forms.delete(id);
    return last;
  }
}
