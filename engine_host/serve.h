// The two loops of optfarm-engine. The first process holds no model: for each
// it makes a second one, which can crash, hang or fill its memory, and tells
// how that one ended.

#ifndef OPTFARM_ENGINE_HOST_SERVE_H_
#define OPTFARM_ENGINE_HOST_SERVE_H_

#include <string>
#include <vector>

namespace optfarm::engine_host {

struct ServeOptions {
  // As for OpenEngine.
  std::string engine, library;
  // Enters the sandbox of base/sandbox.h before anything of the runtime's or of
  // the model's is looked at; then only `readable` files, the system's and the
  // library's folder can be read.
  bool sandbox = false;
  std::vector<std::string> readable;
};

// Until the other end closes the socket. REQUIRES: no other thread runs.
void Serve(int socket, const ServeOptions& options);

}  // namespace optfarm::engine_host

#endif  // OPTFARM_ENGINE_HOST_SERVE_H_
