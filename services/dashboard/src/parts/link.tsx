/** A link to another page of the dashboard: an ordinary one to everybody but a plain click. */
import { Anchor, type AnchorProps } from '@mantine/core';
import type { MouseEvent, ReactElement, ReactNode } from 'react';
import { hrefOf, navigate } from '../lib/route.js';

export function follow(path: string): (event: MouseEvent) => void {
  return (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(path);
  };
}

export function Link({ to, children, ...rest }: AnchorProps & { readonly to: string; readonly children: ReactNode }): ReactElement {
  return (
    <Anchor underline="always" {...rest} href={hrefOf(to)} onClick={follow(to)}>
      {children}
    </Anchor>
  );
}
