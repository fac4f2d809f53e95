// Writes XML 1.0, element by element, to the end of a string: test results,
// charts. Any text is escaped, and what XML cannot hold becomes '?', so that
// the document is well-formed whatever a model's names are.
//
//   XmlWriter xml(out);
//   xml.Begin("text").Attribute("x", 12.5, 1).Text("a < b").End();
//
// appends <text x="12.5">a &lt; b</text> and a newline.

#ifndef OPTFARM_BASE_XML_WRITER_H_
#define OPTFARM_BASE_XML_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace optfarm {

class XmlWriter {
 public:
  // `out` outlives the writer.
  explicit XmlWriter(std::string& out) : out_(out) {}

  // REQUIRES: the name is one that XML allows, and outlives the element.
  XmlWriter& Begin(absl::string_view name);

  // Of the element that was begun last. REQUIRES: it has no content yet.
  XmlWriter& Attribute(absl::string_view name, absl::string_view value);
  template <std::integral T>
  XmlWriter& Attribute(absl::string_view name, T value) {
    return IntegerAttribute(name, static_cast<int64_t>(value));
  }
  // REQUIRES: finite and below 1e15.
  XmlWriter& Attribute(absl::string_view name, double value, int decimals);

  // Content of the innermost element that has not ended.
  XmlWriter& Text(absl::string_view text);

  // Ends this element. REQUIRES: there is one.
  XmlWriter& End();

 private:
  XmlWriter& IntegerAttribute(absl::string_view name, int64_t value);
  void BeginAttribute(absl::string_view name);
  void EndStartTag();

  std::string& out_;
  std::vector<absl::string_view> open_;
  // The start tag of the innermost element can still take attributes.
  bool in_start_tag_ = false;
};

}  // namespace optfarm

#endif  // OPTFARM_BASE_XML_WRITER_H_
