"""Counts the programs that the descendants of a process start, for each of its children.

Usage: count-programs.py PID, as root on Linux. Reports `ready`. When its stdin ends, it prints one
JSON object: process id of a child -> {name of a program -> how often it was started}. The kernel
says who forks and who starts a program (the process connector, linux/cn_proc.h); a name that is
gone when it is looked up is counted as "?".
"""
import collections
import json
import os
import select
import socket
import struct
import sys

NETLINK_CONNECTOR, CN_IDX_PROC, LISTEN, FORK, EXEC = 11, 1, 1, 1, 2
HEADERS = 16 + 20  # nlmsghdr and cn_msg

parent = int(sys.argv[1])
connection = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_CONNECTOR)
connection.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
connection.bind((0, CN_IDX_PROC))
connection.send(
    struct.pack("=IHHII", HEADERS + 4, 3, 0, 0, os.getpid())
    + struct.pack("=IIIIHHI", CN_IDX_PROC, 1, 1, 0, 4, 0, LISTEN)
)
print("ready", flush=True)

child_of = {}  # process -> the child of `parent` that it descends from
programs = collections.defaultdict(collections.Counter)


def name_of(process):
    try:
        with open(f"/proc/{process}/comm") as file:
            return file.read().strip()
    except OSError:
        return "?"


def hear(message):
    (what,) = struct.unpack_from("=I", message, HEADERS)
    first, second, third, fourth = struct.unpack_from("=IIII", message, HEADERS + 16)
    if what == FORK:
        # parent and its thread group, child and its thread group
        if third != fourth:
            return  # a thread
        root = fourth if second == parent else child_of.get(second)
        if root is not None:
            child_of[fourth] = root
    elif what == EXEC and second in child_of:
        programs[child_of[second]][name_of(second)] += 1


while True:
    readable, _, _ = select.select([connection, sys.stdin], [], [])
    if connection in readable:
        hear(connection.recv(4096))
    elif sys.stdin in readable:
        break
print(json.dumps(programs))
