import type { Finding } from "./finding.ts";
import type { SourceFile } from "./source-file.ts";

/**
 * Check that every page a comment cites is in the repository. Pure.
 *
 * Shape: `pages` are paths relative to the repository. A comment may leave out folders at the front: `test/kube-proxy/README.md` is a page
 * of the comment's own package or of another.
 */
export function checkCitations(files: readonly SourceFile[], pages: readonly string[]): Finding[] {
  return files.flatMap(({ path, citedPages }) =>
    citedPages
      .filter(({ what }) => !pages.some((page) => page === what || page.endsWith(`/${what}`)))
      .map(({ what, line }) => ({
        rule: "citations",
        path,
        line,
        subject: what,
        what: `a comment cites ${what}, which is not in this repository: cite a rule (R-..), a page that is, or a KEP`,
      })),
  );
}
