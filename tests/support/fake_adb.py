#!/usr/bin/python3 -S
"""Stands in for adb in tests. Each phone is a folder below $FAKE_ADB_PHONES,
named by its serial:

  state      one word, as `adb devices` shows it; no file: "device"
  props      answers to getprop, lines "name=value"
  battery, thermal   what dumpsys prints
  emulator   the program that runs the benchmark, where the phone's processor is
             not this machine's
  data/      what the phone calls /data/local/tmp
  faults     lines "WORD [COUNT]": what goes wrong the next COUNT times (always
             without it)
      hang_run     the benchmark never ends
      reboot_run   the connection breaks while the benchmark runs
      crash_run    the benchmark is killed by a signal
      full         a push finds no room
      full_always  the same, also after a clean-up
      hang_all     no command is answered
      lose_result  the outcome is cut short
      damage_push  a file arrives with other bytes of the same length
      no_sha256sum the phone has no such tool
  log        every command that came, for tests to look at

A phone's commands are run by this machine's shell, with /data/local/tmp
replaced by the phone's folder.
"""

import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

PHONE_DATA = '/data/local/tmp'


class Phone:
    def __init__(self, folder):
        self.folder = folder
        self.data = folder / 'data'

    def read(self, name, fallback=''):
        path = self.folder / name
        return path.read_text() if path.exists() else fallback

    def state(self):
        return self.read('state', 'device').strip()

    def log(self, line):
        with open(self.folder / 'log', 'a') as log:
            log.write(line + '\n')

    def fault(self, word):
        """Whether this goes wrong now; counts it."""
        path = self.folder / 'faults'
        if not path.exists():
            return False
        with open(path, 'r+') as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            lines = file.read().splitlines()
            hit = False
            kept = []
            for line in lines:
                words = line.split()
                if words and words[0] == word and not hit:
                    hit = True
                    if len(words) > 1 and int(words[1]) <= 1:
                        continue
                    if len(words) > 1:
                        line = f'{word} {int(words[1]) - 1}'
                kept.append(line)
            file.seek(0)
            file.truncate()
            file.write(''.join(line + '\n' for line in kept))
        return hit

    def local(self, path):
        if not path.startswith(PHONE_DATA):
            sys.exit(f"adb: error: '{path}' is not below {PHONE_DATA}")
        return str(self.data) + path[len(PHONE_DATA):]


def sleep_for_ever():
    while True:
        time.sleep(60)


def devices(phones):
    print('List of devices attached')
    for folder in sorted(phones.iterdir()):
        if (folder / 'unplugged').exists():
            continue
        state = Phone(folder).state()
        more = ' product:p model:Stand_In device:d' if state == 'device' else ''
        print(f'{folder.name:22} {state}{more} transport_id:1')


def push(phone, source, target):
    room = phone.fault('full_always') or phone.fault('full')
    if room:
        print(f"adb: error: failed to copy '{source}' to '{target}': remote "
              'couldn\'t write file: No space left on device')
        return 1
    shutil.copyfile(source, phone.local(target))
    if phone.fault('damage_push'):
        data = pathlib.Path(source).read_bytes()
        pathlib.Path(phone.local(target)).write_bytes(b'#' * len(data))
    return 0


def pull(phone, source, target):
    if phone.fault('lose_result'):
        with open(phone.local(source), 'rb') as file:
            pathlib.Path(target).write_bytes(file.read()[:10] + b'\xff')
        return 0
    try:
        shutil.copyfile(phone.local(source), target)
    except FileNotFoundError:
        print(f"adb: error: failed to stat remote object '{source}': "
              'No such file or directory')
        return 1
    return 0


def shell(phone, command):
    if '--run_task=' in command and 'pkill' not in command:
        if phone.fault('hang_run'):
            sleep_for_ever()
        if phone.fault('reboot_run'):
            (phone.folder / 'unplugged').touch()
            shutil.rmtree(phone.data / 'optfarm' / 'task')
            print('error: closed')
            return 255
        if phone.fault('crash_run'):
            print('Segmentation fault')
            return 139
        command = f"{phone.read('emulator')} {command}"
    if command.startswith('dumpsys'):
        print(phone.read(command.split()[1].replace('service', '')))
        return 0
    if command.startswith('cmd power'):
        return 0
    props = dict(line.split('=', 1)
                 for line in phone.read('props').splitlines() if '=' in line)
    if command.startswith('getprop'):
        words = command.split(';')
        for word in words:
            if word.split()[0] == 'getprop':
                print(props.get(word.split()[1], ''))
        command = ';'.join(w for w in words if 'getprop' not in w)
    if 'sha256sum' in command and phone.fault('no_sha256sum'):
        command = command.replace('sha256sum', 'no_such_tool')
    command = command.replace(PHONE_DATA, str(phone.data))
    sys.stdout.flush()
    return subprocess.run(['/bin/sh', '-c', command], check=False).returncode


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    phones = pathlib.Path(os.environ['FAKE_ADB_PHONES'])
    words = sys.argv[1:]
    if words and words[0] == 'devices':
        devices(phones)
        return 0
    if len(words) < 3 or words[0] != '-s':
        sys.exit('adb: usage')
    folder = phones / words[1]
    if not folder.exists() or (folder / 'unplugged').exists():
        print(f"adb: device '{words[1]}' not found")
        return 1
    phone = Phone(folder)
    phone.log(' '.join(words[2:]))
    if phone.state() != 'device':
        print(f'adb: device {phone.state()}.')
        return 1
    if phone.fault('hang_all'):
        sleep_for_ever()
    phone.data.mkdir(exist_ok=True)
    if words[2] == 'push':
        return push(phone, words[3], words[4])
    if words[2] == 'pull':
        return pull(phone, words[3], words[4])
    if words[2] == 'shell':
        return shell(phone, ' '.join(words[3:]))
    sys.exit(f'adb: unknown command {words[2]}')


if __name__ == '__main__':
    sys.exit(main())
