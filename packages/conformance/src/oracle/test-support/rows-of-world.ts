import { fitRow, HIDING_LABELS } from "@turnout/core";
import type { ExplainedState, IPFamily, ObjectKind, ServicePort } from "@turnout/core";
import { createStoreView } from "@turnout/core/testing";
import type { OracleWorld } from "../oracle-world.ts";

/** What the core makes of a world, in one family. */
export function rowsOfWorld(world: OracleWorld, family: IPFamily): ExplainedState & { readonly rows: readonly ServicePort[] } {
  // Hidden objects never leave the source; the store is not asked about them.
  const seen = world.objects.filter((object) => {
    const { labels } = object["metadata"] as { readonly labels?: object };
    const label = HIDING_LABELS[object["kind"] as ObjectKind];
    return label === undefined || labels === undefined || !(label in labels);
  });
  const { nodeName, settings, bindAddress, capabilities, variants, nodePortAddressesDefault } = world;
  const { store, view, pull } = createStoreView(seen, {
    nodeName,
    family,
    settings,
    ...(bindAddress === undefined ? {} : { bindAddress }),
    ...(world.allowedAddresses === undefined ? {} : { allowedAddresses: world.allowedAddresses }),
  });
  store.noteSourceAddresses(world.sourceAddresses ?? []);
  const node = pull()?.node;
  if (node === undefined) throw new Error("the first change set has a node");
  const rows = capabilities[family] === true ? [...view.rows.values()].flatMap((row) => fitRow(row, capabilities).row ?? []) : [];
  return { rows, node, hostAddresses: world.hostAddresses[family], nodePortAddressesDefault, capabilities, variants, issues: [] };
}
