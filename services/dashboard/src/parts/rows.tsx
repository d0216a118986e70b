/** A table that scrolls where there is room, and where there is not shows each row as a small card with the columns' names. */
import { useLayoutEffect, useRef, type ReactElement, type ReactNode } from 'react';

export function Rows({ children }: { readonly children: ReactNode }): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  // The names are those of the head, whatever table it is: style.css shows them beside their cells.
  useLayoutEffect(() => {
    const names = [...(place.current?.querySelectorAll('thead th') ?? [])].map((head) => head.textContent ?? '');
    for (const row of place.current?.querySelectorAll('tbody tr') ?? []) for (const [index, cell] of [...row.children].entries()) cell.setAttribute('data-name', names[index] ?? '');
  });
  return (
    <div className="rows" role="group" aria-label="Table" tabIndex={0} ref={place}>
      {children}
    </div>
  );
}
