// optfarm-engine: runs models in a runtime that the user ships, for optctl and
// optfarm-agent, which start it and talk to it through its standard input.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "engine_host/serve.h"

namespace {

constexpr char kUsage[] =
    "optfarm-engine is started by optctl and optfarm-agent, which speak with "
    "it\n"
    "through a socket: optfarm-engine ENGINE LIBRARY [--sandbox]\n"
    "[--readable=FOLDER]...\n"
    "Use optctl run --engine=ENGINE:LIBRARY or\n"
    "optfarm-agent --engine=ENGINE:LIBRARY.\n";

bool IsSocket(int descriptor) {
  struct stat info = {};
  return ::fstat(descriptor, &info) == 0 && S_ISSOCK(info.st_mode);
}

}  // namespace

int main(int argc, char** argv) {
  optfarm::engine_host::ServeOptions options;
  const std::string readable = "--readable=";
  bool understood = argc >= 3 && IsSocket(STDIN_FILENO);
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--sandbox") {
      options.sandbox = true;
    } else if (word.rfind(readable, 0) == 0) {
      options.readable.push_back(word.substr(readable.size()));
    } else {
      understood = false;
    }
  }
  if (!understood) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  options.engine = argv[1];
  options.library = argv[2];
  // Runtimes print to standard output, and some read standard input.
  const int socket = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (socket < 0 || nothing < 0) return 1;
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  optfarm::engine_host::Serve(socket, options);
  return 0;
}
