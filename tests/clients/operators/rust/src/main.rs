//! What operators and their tools ask, by redis-rs, in both protocols: see ../../run.

use redis::acl::Rule;
use redis::{cmd, Commands, Connection, InfoDict, RedisResult, Value};
use std::collections::HashMap;
use std::env::var;
use std::error::Error;

type Checked = Result<(), Box<dyn Error>>;

fn expect<T: PartialEq + std::fmt::Debug>(got: T, wanted: T) -> Checked {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{got:?} instead of {wanted:?}").into())
}

fn config(client: &mut Connection) -> Checked {
    let options: HashMap<String, String> = cmd("CONFIG").arg("GET").arg("*").query(client)?;
    expect(options.len() > 150, true)?;
    expect(options["maxmemory"].as_str(), "0")
}

fn acl(client: &mut Connection) -> Checked {
    let text = std::fs::read_to_string(var("COMMAND_NAMES")?)?;
    let mut all = vec![Rule::Reset, Rule::On, Rule::Pattern("a*".into())];
    for name in text.split_whitespace() {
        let rules = [Rule::Reset, Rule::AddCommand(name.into()), Rule::RemoveCommand(name.into())];
        let _: () = client.acl_setuser_rules("rules", &rules)?;
        all.push(Rule::AddCommand(name.into()));
    }
    let _: () = client.acl_setuser_rules("rules", &all)?;
    // The library's own type for users cannot hold what servers say since 7.0.
    let user: Vec<Value> = client.acl_getuser("rules")?;
    expect(user.is_empty(), false)?;
    let categories: Vec<String> = client.acl_cat()?;
    for category in categories {
        let rules = [Rule::AddCategory(category.clone()), Rule::RemoveCategory(category)];
        let _: () = client.acl_setuser_rules("rules", &rules)?;
    }
    let users: Vec<String> = client.acl_users()?;
    expect(users.len(), 2)?;
    expect(client.acl_deluser(&["rules"])?, 1)
}

fn role(client: &mut Connection) -> Checked {
    let (name, _, replicas): (String, i64, Vec<Value>) = cmd("ROLE").query(client)?;
    expect((name.as_str(), replicas.len()), ("master", 0))?;
    expect(cmd("WAIT").arg(0).arg(0).query(client)?, 0)?;
    expect(cmd("WAIT").arg(1).arg(10).query(client)?, 0)
}

fn modules(client: &mut Connection) -> Checked {
    let list: Vec<Value> = cmd("MODULE").arg("LIST").query(client)?;
    expect(list.len(), 0)
}

fn cluster(client: &mut Connection) -> Checked {
    for words in [vec!["CLUSTER", "INFO"], vec!["READONLY"], vec!["READWRITE"]] {
        let reply: RedisResult<Value> = cmd(words[0]).arg(&words[1..]).query(client);
        let error = reply.err().ok_or("it is not refused")?;
        let told = (error.code(), error.detail().unwrap_or_default().to_string());
        expect(told, (Some("ERR"), "This instance has cluster support disabled".to_string()))?;
    }
    Ok(())
}

fn clients(client: &mut Connection) -> Checked {
    let list: String = cmd("CLIENT").arg("LIST").query(client)?;
    let id: i64 = cmd("CLIENT").arg("ID").query(client)?;
    expect(list.lines().filter(|line| line.starts_with(&format!("id={id} "))).count(), 1)
}

fn info(client: &mut Connection) -> Checked {
    let fields: InfoDict = cmd("INFO").arg("everything").query(client)?;
    let version: String = fields.get("redis_version").ok_or("no version")?;
    expect(&version[..2], "7.")?;
    let used: u64 = fields.get("used_memory").ok_or("no used_memory")?;
    expect(used > 0, true)?;
    expect(fields.get("connected_slaves"), Some(0))
}

fn main() -> Checked {
    type Scenario = fn(&mut Connection) -> Checked;
    let scenarios: [(&str, Scenario); 7] = [("config", config), ("acl", acl), ("role", role), ("modules", modules),
        ("cluster", cluster), ("clients", clients), ("info", info)];
    for (name, scenario) in scenarios {
        let run = |protocol: &str| -> Checked {
            let url = format!("redis://127.0.0.1:{}/{}", var("PORT")?, protocol);
            scenario(&mut redis::Client::open(url)?.get_connection()?)
        };
        match run("").and_then(|()| run("?protocol=resp3")) {
            Ok(()) => println!("ok {name}"),
            Err(problem) => println!("not ok {name}: {problem}"),
        }
    }
    Ok(())
}
