// DOT, graphviz's language, for pictures of graphs.

#ifndef OPTFARM_ENGINE_FORMATS_TENSORFLOW_DOT_H_
#define OPTFARM_ENGINE_FORMATS_TENSORFLOW_DOT_H_

#include <string>

#include "tensorflow/core/framework/graph.pb.h"

namespace optfarm::formats {

// The graph in the form of TensorFlow's graph_to_dot: a node a line, labelled
// with its op, then an edge for each of its inputs, whose ports and control
// marks are left out. Quotation marks, backslashes and line ends in names are
// escaped, so that every graph gives valid DOT.
std::string GraphToDot(const tensorflow::GraphDef& graph);

}  // namespace optfarm::formats

#endif  // OPTFARM_ENGINE_FORMATS_TENSORFLOW_DOT_H_
