// What the bytes of a graph's file are: names, inputs, values of constants, and
// what ops and attributes take.

#ifndef OPTFARM_ENGINE_INSPECT_GRAPH_BYTES_H_
#define OPTFARM_ENGINE_INSPECT_GRAPH_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tensorflow {
class GraphDef;
}  // namespace tensorflow

namespace optfarm::inspect {

// UNITS: bytes of the binary form, and nodes.
struct OpBytes {
  // "(functions)" for the library, "all" for the file.
  std::string op;
  int64_t nodes = 0;
  int64_t all = 0;
  int64_t values = 0;
  int64_t names = 0;
  int64_t inputs = 0;

  // Ops, attributes, and what messages take.
  int64_t other() const { return all - values - names - inputs; }
};

// One entry for each op, the one with most bytes first; functions have one, and
// the last, "all", is the file.
std::vector<OpBytes> CountGraphBytes(const tensorflow::GraphDef& graph);

}  // namespace optfarm::inspect

#endif  // OPTFARM_ENGINE_INSPECT_GRAPH_BYTES_H_
