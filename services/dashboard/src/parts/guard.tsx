/** Keeps a page that breaks from taking the frame around it along. */
import { Button } from '@mantine/core';
import { Component, type ReactNode } from 'react';
import { Empty, Panel } from './panel.tsx';

/** React asks for a class here. */
export class Guard extends Component<{ readonly children: ReactNode }, { readonly isBroken: boolean }> {
  override state = { isBroken: false };

  static getDerivedStateFromError(): { readonly isBroken: boolean } {
    return { isBroken: true };
  }

  override render(): ReactNode {
    if (!this.state.isBroken) return this.props.children;
    return (
      <Panel>
        <Empty title="This page cannot be shown">
          The gateway may have been renewed since it was loaded.{' '}
          <Button size="xs" variant="default" onClick={() => window.location.reload()}>
            Load it anew
          </Button>
        </Empty>
      </Panel>
    );
  }
}
