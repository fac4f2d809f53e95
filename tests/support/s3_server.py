#!/usr/bin/python3
"""A real S3 server for tests: OpenStack Swift with its S3 interface, in this
one process.

usage: s3_server.py DIR [--region=NAME] [--listen=ADDRESS] [--port=PORT]
                    [--bucket=NAME]

Keeps everything in DIR, which must be on a file system with extended
attributes; started again with the same DIR it still has its objects. Makes the
bucket, prints KEY=VALUE lines once it answers, and runs until a signal ends it.
Listens on loopback, unless another address is given, and takes requests signed
with the key of S3_SECRET_KEY in the environment, which then is not printed.
Ends with status 77, naming what is missing, where it cannot run. Needs Debian's
package python3-swift.
"""

import argparse
import os
import pathlib
import sys
import time

SKIPPED = 77
ACCOUNT, USER, KNOWN_SECRET = 'test', 'tester', 'testing'
SECRET = os.environ.get('S3_SECRET_KEY', KNOWN_SECRET)


def skip(reason):
    print(f's3_server: {reason}', file=sys.stderr)
    sys.exit(SKIPPED)


try:
    import eventlet
    eventlet.monkey_patch(thread=False)
    import eventlet.wsgi
    from swift.common import utils
    from swift.common.ring import RingBuilder
except ImportError as error:
    skip(f'install the package python3-swift ({error})')

SWIFT_CONF = '''[swift-hash]
swift_hash_path_prefix = test
swift_hash_path_suffix = test
[storage-policy:0]
name = only
default = yes
'''

PROXY_CONF = '''[DEFAULT]
swift_dir = {root}
log_level = ERROR
[pipeline:main]
pipeline = catch_errors gatekeeper listing_formats bulk s3api tempauth copy slo dlo proxy-server
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
node_timeout = 10
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:bulk]
use = egg:swift#bulk
[filter:s3api]
use = egg:swift#s3api
location = {region}
[filter:tempauth]
use = egg:swift#tempauth
user_{account}_{user} = {secret} .admin
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
minimum_segment_size = 1
[filter:dlo]
use = egg:swift#dlo
'''


def now():
    return time.time()


class MemoryCache:
    """What Swift's middleware asks of memcached."""

    def __init__(self):
        self._values = {}

    def get(self, key, **_):
        value, until = self._values.get(key, (None, 0))
        return value if until == 0 or until > now() else None

    def set(self, key, value, time=0, **_):
        self._values[key] = (value, now() + time if time else 0)

    def incr(self, key, delta=1, time=0, **_):
        value = int(self.get(key) or 0) + delta
        self.set(key, value, time=time)
        return value

    def delete(self, key, **_):
        self._values.pop(key, None)


def check_attributes(root):
    probe = root / 'attributes'
    probe.touch()
    try:
        os.setxattr(probe, 'user.probe', b'x' * 2000)
    except OSError as error:
        skip(f'{root} is on a file system without extended attributes ({error})')
    probe.unlink()


def build_rings(root, ports):
    """One device on this machine, and one copy of everything."""
    for kind in ('account', 'container', 'object'):
        builder = RingBuilder(part_power=1, replicas=1, min_part_hours=0)
        builder.add_dev({'id': 0, 'region': 1, 'zone': 1, 'weight': 1.0,
                         'ip': '127.0.0.1', 'port': ports[kind],
                         'device': 'disk', 'meta': ''})
        builder.rebalance()
        builder.get_ring().save(str(root / f'{kind}.ring.gz'))
    (root / 'devices' / 'disk').mkdir(parents=True, exist_ok=True)


def make_apps(root, region):
    utils.set_swift_dir(str(root))
    # Their modules read swift.conf when they are imported.
    from swift.account.server import AccountController
    from swift.common.storage_policy import reload_storage_policies
    from swift.common.wsgi import loadapp
    from swift.container.server import ContainerController
    from swift.obj.server import ObjectController
    reload_storage_policies()
    conf = {'devices': str(root / 'devices'), 'mount_check': 'false',
            'swift_dir': str(root), 'log_level': 'ERROR',
            'container_update_timeout': '5'}
    proxy_conf = root / 'proxy.conf'
    proxy_conf.write_text(PROXY_CONF.format(
        root=root, region=region, account=ACCOUNT, user=USER, secret=SECRET))
    proxy = loadapp(str(proxy_conf), global_conf={'log_name': 'proxy'})
    cache = MemoryCache()

    def cached_proxy(env, start_response):
        env['swift.cache'] = cache
        return proxy(env, start_response)

    return {'account': AccountController(conf),
            'container': ContainerController(conf),
            'object': ObjectController(conf), 'proxy': cached_proxy}


def make_bucket(app, name):
    """Past the signatures, as an administrator."""
    from swift.common.swob import Request
    answer = Request.blank(
        f'/v1/AUTH_{ACCOUNT}/{name}', method='PUT',
        environ={'swift.authorize_override': True,
                 'swift.authorize': lambda request: None}).get_response(app)
    if answer.status_int // 100 != 2:
        sys.exit(f's3_server: making the bucket {name}: {answer.status}')


def serve(sockets, apps, ready):
    from swift.common.wsgi import SwiftHttpProtocol
    quiet = open(os.devnull, 'w')
    servers = [
        eventlet.spawn(eventlet.wsgi.server, sockets[name], app, log=quiet,
                       protocol=SwiftHttpProtocol, socket_timeout=60,
                       capitalize_response_headers=False)
        for name, app in apps.items()]
    ready()
    for server in servers:
        server.wait()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument('root', type=pathlib.Path)
    parser.add_argument('--region', default='us-east-1')
    parser.add_argument('--listen', default='127.0.0.1')
    parser.add_argument('--port', type=int, default=0)
    parser.add_argument('--bucket')
    flags = parser.parse_args()
    root = flags.root.resolve()
    root.mkdir(parents=True, exist_ok=True)
    check_attributes(root)
    (root / 'swift.conf').write_text(SWIFT_CONF)
    if not SECRET.isalnum():
        sys.exit('s3_server: S3_SECRET_KEY may have letters and digits only')
    names = ('account', 'container', 'object', 'proxy')
    sockets = {name: eventlet.listen(
        (flags.listen, flags.port) if name == 'proxy' else ('127.0.0.1', 0))
        for name in names}
    ports = {name: sockets[name].getsockname()[1] for name in names}
    build_rings(root, ports)
    apps = make_apps(root, flags.region)

    def ready():
        if flags.bucket:
            make_bucket(apps['proxy'], flags.bucket)
        secret = f'S3_SECRET_KEY={SECRET}\n' if SECRET == KNOWN_SECRET else ''
        print(f'S3_ENDPOINT=http://127.0.0.1:{ports["proxy"]}\n'
              f'S3_ACCESS_KEY={ACCOUNT}:{USER}\n{secret}'
              f'S3_REGION={flags.region}\nS3_READY=1', flush=True)

    serve(sockets, apps, ready)


if __name__ == '__main__':
    main()
