/** Find an element of the page. @throws {Error} when the page has none of that id and kind. */
export function at<E extends HTMLElement>(id: string, kind: new () => E): E {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`the page has no ${id}`);
  return element;
}

/** Make an element with text or other elements in it: text is never taken for HTML. */
export function make(
  name: string,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly (Node | string)[]
): HTMLElement {
  const element = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  element.append(...children);
  return element;
}

/** Make a table with a caption for those who can't see it. */
export function tableOf(caption: string, columns: readonly string[], rows: readonly (readonly (Node | string)[])[]): HTMLElement {
  const head = make("tr", {}, ...columns.map((column) => make("th", { scope: "col" }, column)));
  const lines = rows.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell))));
  return make(
    "div",
    { class: "wide" },
    make("table", {}, make("caption", { class: "hidden" }, caption), make("thead", {}, head), make("tbody", {}, ...lines)),
  );
}
