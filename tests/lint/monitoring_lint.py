#!/usr/bin/env python3
"""Checks what deploy/monitoring and the charts ask Prometheus for: every metric
that a rule or a panel names is one that the servers have, with labels of its
own, and every metric that the servers have is shown or watched.
"""

import json
import re

from source_tree import SourceTree

ALERTS = 'deploy/monitoring/alerts.yaml'
DASHBOARD = 'deploy/monitoring/dashboard.json'
SOURCES = ('server/upkeep/metrics.cc', 'server/forwarding/forwarding_metrics.cc',
           'server/delivery/trace_exporter.cc')
NAME = re.compile(r'\boptfarm_[a-z_]+\b')
HISTOGRAM = re.compile(r'BuildHistogram\(\)\s*\.Name\("(\w+)"\)')
LABELS = {'kind', 'state', 'outcome', 'transform', 'le', 'instance'}
GROUPED = re.compile(r'\bby \(([^)]*)\)')
MATCHED = re.compile(r'[{,]\s*(\w+)\s*(?:=|!=|=~|!~)\s*"')


def metrics(tree):
    text = ''.join(tree.read(path) for path in SOURCES)
    names = set(NAME.findall(text))
    for name in HISTOGRAM.findall(text):
        names.update(name + end for end in ('_bucket', '_sum', '_count'))
    return names


def base(name):
    return re.sub(r'_(bucket|sum|count)$', '', name)


def main():
    tree = SourceTree()
    known = metrics(tree)
    alerts = re.sub(r'#.*', '', tree.read(ALERTS))
    board = json.loads(tree.read(DASHBOARD))
    asked = {ALERTS: [alerts],
             DASHBOARD: [target['expr'] for panel in board['panels']
                         for target in panel['targets']]}
    seen = set()
    for path, texts in asked.items():
        for text in texts:
            for name in NAME.findall(text):
                seen.add(base(name))
                if name not in known:
                    tree.problem(path, f'no server has the metric {name}')
            labels = {label.strip() for group in GROUPED.findall(text)
                      for label in group.split(',')}
            labels.update(MATCHED.findall(text))
            for label in labels - LABELS:
                tree.problem(path, f'no metric has the label {label}')
    for name in {base(name) for name in known} - seen:
        tree.problem(DASHBOARD, f'nothing shows the metric {name}')
    places = [(p['gridPos']['x'], p['gridPos']['y']) for p in board['panels']]
    if len(set(places)) != len(places):
        tree.problem(DASHBOARD, 'two panels lie on each other')
    tree.finish()


if __name__ == '__main__':
    main()
