#include "retrieval/report/page.h"

#include "retrieval/report/html.h"
#include "retrieval/report/style.h"

#include <fmt/format.h>

namespace rk {
namespace {

std::string html_head(const std::string& title) {
  return fmt::format(
      "{}<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<meta http-equiv=\"Content-Security-Policy\" "
      "content=\"default-src &#39;none&#39;; img-src data:; style-src {}; script-src {}; base-uri "
      "&#39;none&#39;; form-action &#39;none&#39;\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"referrer\" content=\"no-referrer\"/>\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      kReportBegins, escaped(source_hash(kReportStyle)), escaped(source_hash(kReportScript)),
      escaped(title), kReportStyle);
}

std::string section(const PagePart& part) {
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n",
                     part.id, part.title, part.contents);
}

}  // namespace

std::string page_of(const PageHead& head, const std::vector<PagePart>& parts) {
  std::string out = html_head(head.title) +
                    fmt::format(
                        "<body>\n<a class=\"skip\" href=\"#{}\">To the result</a>\n<header>\n"
                        "<h1>{}</h1>\n<p>{}</p>\n",
                        parts.front().id, escaped(head.title), escaped(head.data));
  for (const std::string& remark : head.remarks) {
    out += fmt::format("<p class=\"under\">{}.</p>\n", escaped(remark));
  }
  for (const std::string& note : head.notes) {
    out += fmt::format("<p class=\"under\">Note: {}.</p>\n", escaped(note));
  }
  std::string links, sections;
  for (const PagePart& part : parts) {
    if (part.contents.empty()) continue;
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", part.id, part.title);
    sections += section(part);
  }
  return out + fmt::format(
                   "<nav aria-label=\"Parts of this page\"><ul>\n{}</ul></nav>\n</header>\n"
                   "<main>\n{}</main>\n<script>{}</script>\n</body>\n</html>\n",
                   links, sections, kReportScript);
}

}  // namespace rk
