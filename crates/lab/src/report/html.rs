//! Renders a page as one HTML file with the template `page.html`.

use super::{Block, Chart, Page, Section};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, context};

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// Renders the page. Its Content Security Policy forbids the browser to load anything. So even a
/// fault in this module, for example in the escaping, cannot make the browser load anything.
pub(super) fn render_page(page: &Page) -> Result<String, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(true).build()?;
    environment.set_syntax(syntax);
    environment.set_formatter(|out, _, value| {
        let text = value.to_string();
        Ok(out.write_str(&if value.is_safe() { text } else { escape(&text) })?)
    });
    environment.add_filter("at", |position: f64| format!("{position:.1}"));
    let Page { title, lead, facts, sections } = page;
    let sections: Vec<Value> = sections.iter().map(section).collect();
    environment.render_str(TEMPLATE, context! { title, lead, facts, sections, style => STYLE })
}

fn section(section: &Section) -> Value {
    context! { title => &section.title, blocks => section.blocks.iter().map(block).collect::<Vec<_>>() }
}

fn block(block: &Block) -> Value {
    match block {
        Block::Paragraph(text) => context! { text },
        Block::Notes(notes) => context! { notes },
        Block::Terms(terms) => context! { terms },
        Block::Charts(charts) => {
            context! { charts => charts.iter().map(Chart::template_variables).collect::<Vec<_>>() }
        }
        Block::Table(table) => context! { table => table.template_variables() },
    }
}

/// Escapes text for HTML, between tags and in quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}
