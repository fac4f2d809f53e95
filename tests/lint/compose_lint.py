#!/usr/bin/env python3
"""Checks the compose files in deploy/container as far as it goes without
containers: images that the Containerfile makes, flags that the programs have,
names, volumes and secrets that are there, doors on loopback alone. And that
compose.scale.yaml starts what scripts/scale_demo does. Needs PyYAML, and is
skipped without it.
"""

import re

from source_tree import SourceTree, skip

try:
    import yaml
except ImportError:
    skip('there is no python3-yaml')

FOLDER = 'deploy/container'
SCALE = f'{FOLDER}/compose.scale.yaml'
HAPROXY = 'deploy/haproxy/haproxy.cfg'
DEMO = 'scripts/scale_demo'
FLAG = re.compile(r'(?<!\S)"?(--[a-z0-9_]+)')
# The demo's are for loopback, and short for those who watch.
DEMO_ALONE = {'--lease_seconds'}
CONTAINERS_ALONE = {'--token_file', '--http_peer_connections'}


def words(service, field):
    value = service.get(field, [])
    return [value] if isinstance(value, str) else [str(word) for word in value]


class Check:
    def __init__(self, tree, path):
        self.tree, self.path = tree, path
        self.file = yaml.safe_load(tree.read(path))
        self.images = set(re.findall(r'(?m)^FROM base AS (\w+)',
                                     tree.read(f'{FOLDER}/Containerfile')))

    def problem(self, what):
        self.tree.problem(self.path, what)

    def run(self):
        services = self.file['services']
        for name, service in services.items():
            image = service['image'].removeprefix('optfarm-')
            if image not in self.images:
                self.problem(f'{name}: the Containerfile makes no {image}')
            for field in ('read_only', 'cap_drop', 'security_opt'):
                if not service.get(field):
                    self.problem(f'{name}: {field} is missing')
            for port in service.get('ports', []):
                if not port.startswith('127.0.0.1:'):
                    self.problem(f'{name}: {port} is open to other machines')
            self.names(name, service)
            if image in ('server', 'worker', 'agent'):
                self.flags(name, image, service)
            self.waits(name, service, services)

    def names(self, name, service):
        for volume in service.get('volumes', []):
            if volume.split(':')[0] not in self.file['volumes']:
                self.problem(f'{name}: there is no volume {volume}')
        for secret in service.get('secrets', []):
            if secret not in self.file['secrets']:
                self.problem(f'{name}: there is no secret {secret}')
        for word in words(service, 'command'):
            for secret in re.findall(r'/run/secrets/(\w+)', word):
                if secret not in service.get('secrets', []):
                    self.problem(f'{name}: it is not shown {secret}')

    def flags(self, name, image, service):
        folders = {'server': ('server',), 'worker': ('worker', 'rpc'),
                   'agent': ('device_agent', 'rpc')}[image]
        source = ''.join(self.tree.read(path)
                         for path in self.tree.files('.cc', '.h')
                         if path.parts[0] in folders)
        for flag in FLAG.findall(' '.join(words(service, 'entrypoint') +
                                          words(service, 'command'))):
            if f'"{flag}"' not in source:
                self.problem(f'{name}: optfarm-{image} has no flag {flag}')

    def waits(self, name, service, services):
        waits = service.get('depends_on', {})
        for other in waits:
            if other not in services:
                self.problem(f'{name}: waits for {other}, which is not there')
            elif isinstance(waits, dict) and 'healthcheck' not in services[other]:
                self.problem(f'{name}: nobody can say whether {other} is healthy')


def check_scale(check):
    """Against HAProxy's configuration and the demo."""
    services = check.file['services']
    servers = [name for name, service in services.items()
               if service['image'] == 'optfarm-server']
    proxy = services['proxy']['environment']
    wanted = set(re.findall(r'\${(\w+)}', check.tree.read(HAPROXY)))
    if set(proxy) != wanted:
        check.problem(f'proxy: its configuration asks for {sorted(wanted)}')
    hosts = [proxy[name] for name in sorted(proxy)
             if re.fullmatch(r'OPTFARM_\d', name)]
    if hosts != servers or any(services[host].get('hostname') != host
                               for host in servers):
        check.problem('proxy: its servers are not those of the file')
    folders = [volume for host in servers for volume in services[host]['volumes']]
    if len(set(folders)) != len(servers):
        check.problem('servers share a data folder')
    listens = {word.split('=')[0]: word.rsplit(':', 1)[1]
               for word in services[servers[0]]['command']
               if word.startswith(('--grpc=', '--http='))}
    for number in range(1, len(servers) + 1):
        for door in ('grpc', 'http'):
            if proxy[f'OPTFARM_{door.upper()}_PORT_{number}'] != listens[f'--{door}']:
                check.problem(f'proxy: server {number} has another {door} port')
    demo = re.search(r'optfarm-server" (.*?)--lease_seconds=\d+\n',
                     check.tree.read(DEMO), re.DOTALL)[0]
    in_demo = set(FLAG.findall(demo.replace('\\\n', ' '))) - DEMO_ALONE
    service = services[servers[0]]
    here = set(FLAG.findall(' '.join(words(service, 'entrypoint') +
                                     words(service, 'command'))))
    here -= CONTAINERS_ALONE
    if in_demo != here:
        check.problem(f'{DEMO} and this differ in {sorted(in_demo ^ here)}')


def main():
    tree = SourceTree()
    for path in (f'{FOLDER}/compose.yaml', SCALE):
        check = Check(tree, path)
        check.run()
        if path == SCALE:
            check_scale(check)
    tree.finish()


if __name__ == '__main__':
    main()
