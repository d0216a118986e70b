/** Lines and bars over time, drawn by uPlot in the colours of the theme. */
import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef, type ReactElement } from 'react';
import UPlot from 'uplot';

export interface Series {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** 1 to 4: which of the theme's series. */
  readonly color: 1 | 2 | 3 | 4;
  readonly kind?: 'bars' | 'line' | 'points' | 'dotted';
}

export interface ChartProps {
  /** What a reader who cannot see it is told. */
  readonly description: string;
  /** Unix seconds, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly isDaily?: boolean;
}

const HEIGHT = 220;

export function Chart({ description, times, series, format, isDaily = false }: ChartProps): ReactElement {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme('light');

  useEffect(() => {
    const node = place.current;
    if (node === null) return undefined;
    const style = getComputedStyle(node);
    const color = (name: string): string => style.getPropertyValue(name).trim();
    const axis = { stroke: color('--mantine-color-dimmed'), grid: { stroke: color('--line'), width: 1 }, ticks: { show: false }, font: '11px ui-sans-serif, system-ui, sans-serif' };
    const bars = UPlot.paths.bars?.({ size: [0.7, 40], radius: 0.2 });
    const points = UPlot.paths.points?.();
    const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', ...(isDaily ? { timeZone: 'UTC' } : {}) });
    const hour = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
    const span = (times.at(-1) ?? 0) - (times[0] ?? 0);
    const plot = new UPlot(
      {
        width: node.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, points: { size: 6 } },
        padding: [10, 16, 0, 0],
        scales: { x: { time: true, ...(isDaily ? { range: (_plot: UPlot, min: number, max: number): [number, number] => [min - 43_200, max + 43_200] } : {}) }, y: { range: (_plot: UPlot, _min: number, max: number): [number, number] => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [
          { ...axis, size: 30, space: 70, values: (_plot: UPlot, splits: number[]) => splits.map((at) => (isDaily || span > 172_800 ? day : hour).format(new Date(at * 1_000))) },
          { ...axis, size: 62, values: (_plot: UPlot, splits: number[]) => splits.map(format) },
        ],
        series: [
          {},
          ...series.map(({ label, color: index, kind = 'line' }) => {
            const stroke = color(`--series-${index}`);
            return { label, stroke, width: kind === 'bars' ? 0 : 2, points: { show: kind === 'points' || kind === 'dotted', size: 6, fill: stroke }, ...(kind === 'bars' ? { fill: stroke, ...(bars === undefined ? {} : { paths: bars }) } : {}), ...(kind === 'points' && points !== undefined ? { paths: points } : {}) };
          }),
        ],
      },
      [[...times], ...series.map(({ values }) => [...values])],
      node,
    );
    const observer = new ResizeObserver(() => plot.setSize({ width: node.clientWidth, height: HEIGHT }));
    observer.observe(node);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [times, series, format, isDaily, scheme]);

  return <div ref={place} className="chart" role="img" aria-label={description} />;
}
