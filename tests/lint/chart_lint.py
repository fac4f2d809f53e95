#!/usr/bin/env python3
"""Checks the Helm chart in deploy/helm as far as it goes without Helm: renders
the templates with the default values and with others, and looks at what comes
out: YAML, the fields that Kubernetes requires, selectors that match, ports and
volumes that are there, flags that the programs have, pages that the server
answers, metrics that it has.

What renders them knows only the constructs that the chart uses, and any other
is a problem here. Needs PyYAML, and is skipped without it.
"""

import re

from source_tree import SourceTree, skip

try:
    import yaml
except ImportError:
    skip('there is no python3-yaml')

CHART = 'deploy/helm/optfarm'
TEMPLATES = ('server', 'worker', 'monitor')
TAG = re.compile(r'{{(-?)\s*(.*?)\s*(-?)}}', re.DOTALL)
REQUIRED = {
    'Deployment': ('spec.selector.matchLabels', 'spec.template.metadata.labels',
                   'spec.template.spec.containers'),
    'Service': ('spec.selector', 'spec.ports'),
    'PodDisruptionBudget': ('spec.selector.matchLabels', 'spec.maxUnavailable'),
    'NetworkPolicy': ('spec.podSelector', 'spec.policyTypes'),
    'HorizontalPodAutoscaler': ('spec.scaleTargetRef.name', 'spec.maxReplicas',
                                'spec.metrics'),
    'ServiceMonitor': ('spec.selector.matchLabels', 'spec.endpoints'),
}
OTHER_VALUES = {
    'blobs': {'place': 's3://b', 'endpoint': 'https://s3', 'region': 'r',
              'pathStyle': True, 'downloadEndpoint': 'https://s3.example.com'},
    'allowFrom': [{'podSelector': {}}],
    'monitoring': {'enabled': False},
}


class Unknown(Exception):
    """A construct that is not rendered here."""


def dig(tree, path):
    for name in path.split('.'):
        if name:
            tree = tree[name]
    return tree


def evaluate(text, scope, dot):
    """What stands between the braces."""
    parts = [part.strip() for part in text.split('|')]
    first = parts[0]
    printed = re.fullmatch(r'printf "([^"]*)" (\S+)', first)
    if printed:
        value = printed[1] % evaluate(printed[2], scope, dot)
    elif first == '.':
        value = dot
    elif re.fullmatch(r'toYaml \.\S+', first):
        value = yaml.safe_dump(dig(scope, first.split()[1][1:])).rstrip()
    elif re.fullmatch(r'\.[A-Za-z.]+', first):
        value = dig(scope, first[1:])
    else:
        raise Unknown(text)
    for part in parts[1:]:
        if part == 'quote':
            value = '"' + str(value).replace('"', '\\"') + '"'
        elif re.fullmatch(r'nindent \d+', part):
            pad = '\n' + ' ' * int(part.split()[1])
            value = pad + pad.join(str(value).split('\n'))
        else:
            raise Unknown(text)
    return value


def render(text, scope):
    """Literal texts and tags in turns; blocks end with {{ end }}."""
    pieces, at = [], 0
    for tag in TAG.finditer(text):
        literal = text[at:tag.start()]
        if tag[1]:
            literal = literal.rstrip()
        pieces += [('text', literal), ('tag', tag[2])]
        at = tag.end()
        if tag[3]:
            at += len(text[at:]) - len(text[at:].lstrip())
    pieces.append(('text', text[at:]))

    def block(i, dot, live):
        out = []
        while i < len(pieces):
            kind, what = pieces[i]
            i += 1
            if kind == 'text':
                out.append(what if live else '')
            elif what == 'end':
                return ''.join(out), i
            elif what.startswith('if '):
                inner, i = block(i, dot, live and bool(
                    evaluate(what[3:], scope, dot)))
                out.append(inner)
            elif what.startswith('range '):
                values = evaluate(what[6:], scope, dot) if live else []
                begin = i
                _, i = block(begin, dot, False)
                out += [block(begin, value, True)[0] for value in values]
            elif live:
                out.append(str(evaluate(what, scope, dot)))
        return ''.join(out), i

    return block(0, None, True)[0]


class Check:
    def __init__(self, tree, path, objects):
        self.tree, self.path, self.objects = tree, path, objects

    def problem(self, what):
        self.tree.problem(self.path, what)

    def run(self):
        for thing in self.objects:
            name = f"{thing.get('kind')} {thing.get('metadata', {}).get('name')}"
            if thing.get('kind') not in REQUIRED or 'apiVersion' not in thing:
                self.problem(f'{name}: a kind that is not checked')
                continue
            for field in REQUIRED[thing['kind']]:
                try:
                    dig(thing, field)
                except (KeyError, TypeError):
                    self.problem(f'{name}: {field} is missing')
            if thing['kind'] == 'Deployment':
                self.deployment(name, thing['spec'])

    def deployment(self, name, spec):
        labels = spec['template']['metadata']['labels']
        if spec['selector']['matchLabels'].items() - labels.items():
            self.problem(f'{name}: it does not select its own pods')
        pod = spec['template']['spec']
        volumes = {volume['name'] for volume in pod['volumes']}
        if not pod['securityContext'].get('runAsNonRoot'):
            self.problem(f'{name}: it may run as root')
        self.secrets(name, pod)
        for container in pod['containers']:
            mounts = {mount['name'] for mount in container['volumeMounts']}
            if mounts != volumes:
                self.problem(f'{name}: volumes and mounts differ')
            ports = {port['name'] for port in container.get('ports', [])}
            for probe in ('startupProbe', 'livenessProbe', 'readinessProbe'):
                get = container.get(probe, {}).get('httpGet')
                if get and get['port'] not in ports:
                    self.problem(f"{name}: {probe} asks a port that is not there")
                if get and f'"{get["path"]}"' not in self.tree.read(
                        'server/services/http_door.cc'):
                    self.problem(f"{name}: {probe} asks for {get['path']}, "
                                 'which the server does not answer')
            self.flags(name, container)

    def secrets(self, name, pod):
        """Files of secrets belong to root; what fsGroup says may read them."""
        group = pod['securityContext'].get('fsGroup')
        for volume in pod['volumes']:
            if 'secret' not in volume:
                continue
            if volume['secret'].get('defaultMode') != 0o400:
                self.problem(f"{name}: others may read volume {volume['name']}")
            if group is None or group != pod['securityContext'].get('runAsGroup'):
                self.problem(f"{name}: it cannot read volume {volume['name']}")

    def flags(self, name, container):
        source = ''.join(
            self.tree.read(path) for path in self.tree.files('.cc', '.h')
            if path.parts[0] in (container['name'], 'rpc'))
        for argument in container['args']:
            flag = argument.split('=')[0]
            if f'"{flag}"' not in source:
                self.problem(f'{name}: optfarm-{container["name"]} has no flag '
                             f'{flag}')


def check_across(tree, objects):
    """What one object says of another."""
    pods = [thing['spec']['template']['metadata']['labels']
            for thing in objects if thing['kind'] == 'Deployment']
    names = {(t['kind'], t['metadata']['name']) for t in objects}
    metrics = tree.read('server/upkeep/metrics.cc')
    for thing in objects:
        spec = thing['spec']
        wanted = (spec.get('podSelector') or spec.get('selector') or {})
        wanted = wanted.get('matchLabels', wanted)
        if wanted and not any(wanted.items() <= pod.items() for pod in pods):
            tree.problem(CHART, f"{thing['kind']} {thing['metadata']['name']}: "
                         'it selects nothing')
        target = spec.get('scaleTargetRef')
        if target and (target['kind'], target['name']) not in names:
            tree.problem(CHART, f"there is no {target['name']} to scale")
        for metric in spec.get('metrics', []):
            if f'"{metric["external"]["metric"]["name"]}"' not in metrics:
                tree.problem(CHART, 'the autoscaler asks for a metric that no '
                             'server has')


def main():
    tree = SourceTree()
    chart = yaml.safe_load(tree.read(f'{CHART}/Chart.yaml'))
    for field in ('apiVersion', 'name', 'version'):
        if field not in chart:
            tree.problem(CHART, f'Chart.yaml has no {field}')
    defaults = yaml.safe_load(tree.read(f'{CHART}/values.yaml'))
    for values in (defaults, {**defaults, **OTHER_VALUES}):
        everything = []
        for template in TEMPLATES:
            path = f'{CHART}/templates/{template}.yaml'
            text = re.sub(r'(?m)^\s*#.*\n', '', tree.read(path))
            try:
                objects = [thing for thing in yaml.safe_load_all(
                    render(text, {'Values': values,
                                  'Release': {'Name': 'try'}})) if thing]
            except (Unknown, KeyError, yaml.YAMLError) as error:
                tree.problem(path, f'does not render: {error!r}')
                continue
            Check(tree, path, objects).run()
            everything += objects
        check_across(tree, everything)
    tree.finish()


if __name__ == '__main__':
    main()
