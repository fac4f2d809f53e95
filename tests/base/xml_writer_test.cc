#include "base/xml_writer.h"

#include <gtest/gtest.h>

#include <string>

namespace optfarm {
namespace {

std::string Written(absl::string_view text) {
  std::string out;
  XmlWriter(out).Begin("a").Attribute("b", text).Text(text).End();
  return out;
}

TEST(XmlWriterTest, WritesElementsWithinElements) {
  std::string out = "<?xml?>\n";
  XmlWriter xml(out);
  xml.Begin("svg").Attribute("width", 20);
  xml.Begin("rect").Attribute("x", 0.25, 1).Attribute("id", "r").End();
  xml.Begin("g").Begin("title").Text("one").Text(", two").End().End();
  xml.End();
  EXPECT_EQ(out,
            "<?xml?>\n"
            "<svg width=\"20\">\n"
            "<rect x=\"0.2\" id=\"r\"/>\n"
            "<g>\n<title>one, two</title>\n</g>\n"
            "</svg>\n");
}

TEST(XmlWriterTest, EscapesInValuesAndContent) {
  EXPECT_EQ(Written("</a>\"'&\t\n\r"),
            "<a b=\"&lt;/a&gt;&quot;&apos;&amp;&#9;&#10;&#13;\">"
            "&lt;/a&gt;&quot;&apos;&amp;&#9;&#10;&#13;</a>\n");
  EXPECT_EQ(Written(""), "<a b=\"\"></a>\n");
}

TEST(XmlWriterTest, KeepsUtf8AndReplacesWhatXmlCannotHold) {
  EXPECT_EQ(Written("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80"),
            "<a b=\"\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80\">"
            "\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80</a>\n");
  // A control character, a lone byte, one cut short, U+FFFF.
  EXPECT_EQ(Written("\x01 \xFF \xC3 \xEF\xBF\xBF"),
            "<a b=\"? ? ? ?\">? ? ? ?</a>\n");
}

}  // namespace
}  // namespace optfarm
